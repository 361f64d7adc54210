import Foundation
import HeraldJSON
import Testing

@Suite struct JSONCodingTests {
    private struct Small: Codable, Hashable {
        enum Kind: String, Codable {
            case first
            case second
        }

        struct Empty: Codable, Hashable {}

        var whole: Int
        var large: UInt64
        var half: Double
        var single: Float
        var flag: Bool
        var text: String
        var kind: Kind
        var missing: Int?
        var list: [[Int]]
        var table: [String: Int]
        var id: UUID
        var time: Date
        var empty: Empty
        var any: JSON
        var maybe: JSON?
    }

    private let small = Small(
        whole: -7,
        large: .max,
        half: 0.5,
        single: 0.1,
        flag: true,
        text: "é\"\n",
        kind: .second,
        missing: nil,
        list: [[1], [], [2, 3]],
        table: ["b": 2, "a": 1],
        id: UUID(),
        time: Date(timeIntervalSinceReferenceDate: 1.25),
        empty: Small.Empty(),
        any: .object(["z": .number(1), "a": .null]),
        maybe: nil
    )

    @Test func `a value is encoded and decoded unchanged`() throws {
        #expect(try JSON.decode(Small.self, from: JSON.encode(small)) == small)
        #expect(try JSON(encoding: small).decode(Small.self) == small)
    }

    @Test func `foundation reads the same, but for the type JSON`() throws {
        let plain: [String: [Double?]] = ["a": [1, nil, 1e300, -0.001], "b": []]
        #expect(try JSONDecoder().decode([String: [Double?]].self, from: Data(JSON.encode(plain))) == plain)
        #expect(try JSON.decode([String: [Double?]].self, from: Array(JSONEncoder().encode(plain))) == plain)
    }

    @Test func `members of types are sorted, and those of a tree keep their order and every digit`() throws {
        struct Holder: Codable {
            var b: JSON
            var a: JSON
        }
        let text = #"{"a":[1.10,1e400,18446744073709551615],"b":{"z":1,"y":9007199254740993}}"#
        let holder = try JSON.decode(Holder.self, from: Array(text.utf8))
        #expect(String(decoding: try JSON.encode(holder), as: UTF8.self) == text)
    }

    @Test func `a number that does not fit its type is an error, not a trap`() throws {
        func decode<Value: Decodable>(_ type: Value.Type, _ text: String) throws -> Value {
            try JSON.decode([Value].self, from: Array("[\(text)]".utf8))[0]
        }
        #expect(try decode(Int.self, "1.0") == 1)
        #expect(try decode(Int8.self, "1e2") == 100)
        #expect(throws: DecodingError.self) { try decode(Int8.self, "128") }
        #expect(throws: DecodingError.self) { try decode(UInt.self, "-1") }
        #expect(throws: DecodingError.self) { try decode(Int.self, "1.5") }
        #expect(throws: DecodingError.self) { try decode(Int.self, "1e99999999999999999999") }
        #expect(throws: DecodingError.self) { try decode(Double.self, "1e400") }
        #expect(throws: DecodingError.self) { try decode(Float.self, "1e39") }
        #expect(throws: DecodingError.self) { try decode(Int.self, "true") }
        #expect(throws: DecodingError.self) { try decode(Bool.self, "1") }
        #expect(throws: DecodingError.self) { try decode(String.self, "null") }
        #expect(throws: EncodingError.self) { try JSON.encode([Double.infinity]) }
        #expect(throws: EncodingError.self) { try JSON.encode(["a": Float.nan]) }
    }

    @Test func `an error of decoding names its path`() throws {
        do {
            _ = try JSON.decode([String: [Int]].self, from: Array(#"{"a":[1,"2"]}"#.utf8))
            Issue.record("a string is not an integer")
        } catch DecodingError.typeMismatch(_, let context) {
            #expect(context.codingPath.map(\.stringValue) == ["a", "1"])
        }
        do {
            _ = try JSON.decode(Small.self, from: Array("{}".utf8))
            Issue.record("members are missing")
        } catch DecodingError.keyNotFound(let key, _) {
            #expect(key.stringValue == "whole")
        }
    }

    @Test func `other coders are refused, since they would lose digits`() throws {
        #expect(throws: EncodingError.self) { try JSONEncoder().encode(["a": JSON.number(1)]) }
        #expect(throws: DecodingError.self) { try JSONDecoder().decode([JSON].self, from: Data("[1]".utf8)) }
    }

    @Test func `nested and inherited containers are read and written`() throws {
        struct Nested: Codable, Hashable {
            enum Key: String, CodingKey {
                case outer
                case list
            }

            var values: [Int?] = [1, nil]

            init() {}

            init(from decoder: any Decoder) throws {
                let container = try decoder.container(keyedBy: Key.self)
                let inner = try container.nestedContainer(keyedBy: Key.self, forKey: .outer)
                var list = try inner.nestedUnkeyedContainer(forKey: .list)
                values = []
                while !list.isAtEnd { values.append(try list.decodeNil() ? nil : try list.decode(Int.self)) }
            }

            func encode(to encoder: any Encoder) throws {
                var container = encoder.container(keyedBy: Key.self)
                var inner = container.nestedContainer(keyedBy: Key.self, forKey: .outer)
                var list = inner.nestedUnkeyedContainer(forKey: .list)
                for value in values { if let value { try list.encode(value) } else { try list.encodeNil() } }
            }
        }
        #expect(try JSON(encoding: Nested()).description == #"{"outer":{"list":[1,null]}}"#)
        #expect(try JSON(encoding: Nested()).decode(Nested.self) == Nested())
    }

    private struct Snake: Codable, Hashable, SnakeCaseJSON {
        struct Camel: Codable, Hashable { var innerName: Int }

        var apnsID: String
        var deviceToken: String?
        var plain: Int
        var camel: Camel
        var table: [String: Int]
    }

    @Test func `properties are members in snake case, and nothing else is`() throws {
        let value = Snake(apnsID: "a", deviceToken: "d", plain: 1, camel: .init(innerName: 2), table: ["oneName": 3])
        let text = String(decoding: try JSON.encode(value), as: UTF8.self)
        #expect(text == #"{"apns_id":"a","camel":{"innerName":2},"device_token":"d","plain":1,"table":{"oneName":3}}"#)
        let json = try JSON(Array(text.utf8))
        #expect(try json.decode(Snake.self) == value)
        #expect(try json.decodeWhole(Snake.self) == value)
    }

    @Test(arguments: [
        ("deviceToken", #"{"apns_id":"a","plain":1,"camel":{"innerName":2},"table":{},"deviceToken":"d"}"#),
        ("apnsID", #"{"apnsID":"a","plain":1,"camel":{"innerName":2},"table":{}}"#),
        ("camel.inner_name", #"{"apns_id":"a","plain":1,"camel":{"innerName":2,"inner_name":3},"table":{}}"#),
    ])
    func `another spelling of a member is unknown`(path: String, text: String) throws {
        let json = try JSON(Array(text.utf8))
        let error = #expect(throws: JSON.UnknownKey.self) { try json.decodeWhole(Snake.self) }
        #expect(error?.path == path)
    }

    @Test func `an error names the member, not the property`() throws {
        let json = try JSON(Array(#"{"plain":1}"#.utf8))
        let error = #expect(throws: DecodingError.self) { try json.decode(Snake.self) }
        if case .keyNotFound(let key, _) = error {
            #expect(key.stringValue == "apns_id")
        } else {
            Issue.record("\(String(describing: error))")
        }
    }
}
