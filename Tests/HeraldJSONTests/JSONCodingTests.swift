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

    // MARK: - Snake case

    private struct Snake: Codable, Hashable, SnakeCased {
        struct Inner: Codable, Hashable {
            var asWritten = 1
        }

        var apnsID = "a"
        var screenURL: String? = "b"
        var readByID2 = true
        var `extension` = 0
        var byName = ["keptKey": 1, "kept_key": 2]
        var innerPart = Inner()
    }

    @Test func `the coding keys of a type that says so are written in snake case, and nobody else's`() throws {
        let text = String(decoding: try JSON.encode(Snake()), as: UTF8.self)
        #expect(
            text == #"{"apns_id":"a","by_name":{"keptKey":1,"kept_key":2},"extension":0,"inner_part":{"asWritten":1},"#
                + #""read_by_id2":true,"screen_url":"b"}"#
        )
        #expect(try JSON(Array(text.utf8)).decodeWhole(Snake.self) == Snake())
    }

    @Test(arguments: ["apnsID", "apnsId", "apns_ID", "apns__id", "", "_"])
    func `a member in another spelling is unknown`(name: String) throws {
        var members = try #require(try JSON(encoding: Snake()).members)
        members[name] = .null
        let error = #expect(throws: JSON.UnknownKey.self) { try JSON.object(members).decodeWhole(Snake.self) }
        #expect(error?.name == name)
        #expect(error?.known.contains("apns_id") == true && error?.known.contains("apnsID") == false)
        #expect(try JSON.object(members).decode(Snake.self) == Snake())
    }

    @Test func `errors name the member as it is written`() throws {
        let error = #expect(throws: DecodingError.self) { try JSON(Array(#"{"apns_id":1}"#.utf8)).decode(Snake.self) }
        guard case .typeMismatch(_, let context)? = error else {
            Issue.record("\(String(describing: error))")
            return
        }
        #expect(context.codingPath.map(\.stringValue) == ["apns_id"])
        guard
            case .keyNotFound(let key, _)? = #expect(
                throws: DecodingError.self,
                performing: {
                    try JSON(Array("{}".utf8)).decode(Snake.self)
                }
            )
        else {
            Issue.record("no key is missing")
            return
        }
        #expect(key.stringValue == "apns_id")
    }
}
