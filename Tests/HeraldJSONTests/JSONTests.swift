import Testing

@testable import HeraldJSON

@Suite struct JSONTests {
    private func json(_ text: String, _ rules: JSON.Rules = .strict) throws -> JSON {
        try JSON(Array(text.utf8), rules: rules)
    }

    private func number(_ text: String) throws -> JSON.Number {
        try #require(json(text).number)
    }

    @Test(
        arguments: [
            "0", "-0", "1.10", "1e400", "-1E-400", "9007199254740993", "18446744073709551615",
            "0.1000000000000000055511151231257827", "1e99999999999999999999999999",
        ]
    )
    func `every number is written back as it was read`(_ text: String) throws {
        #expect(try json(text).description == text)
        let nested = "{\"a\":[\(text),{\"b\":\(text)}]}"
        #expect(try json(nested).description == nested)
    }

    @Test func `an integer is exact in its type, however it is spelled`() throws {
        #expect(try number("9007199254740993").exactly(Int.self) == 9_007_199_254_740_993)
        #expect(try number("18446744073709551615").exactly(UInt64.self) == .max)
        #expect(try number("18446744073709551615").exactly(Int64.self) == nil)
        #expect(try number("-9223372036854775808").exactly(Int64.self) == .min)
        for one in ["1", "1.0", "1e0", "10e-1", "0.01e2", "1.000E+0", "0.1e1"] {
            #expect(try number(one).exactly(Int.self) == 1, "\(one)")
        }
        for zero in ["0", "-0", "0.000", "0e99999999999999999999", "-0.0E-99999999999999999999"] {
            #expect(try number(zero).exactly(UInt8.self) == 0, "\(zero)")
        }
        for none in ["1.5", "1e400", "1e-400", "1e99999999999999999999", "-1e-99999999999999999999", "1e38", "0.1"] {
            #expect(try number(none).exactly(Int.self) == nil, "\(none)")
        }
        #expect(try number("256").exactly(UInt8.self) == nil)
        #expect(try number("-1").exactly(UInt8.self) == nil)
    }

    @Test func `a number beyond the range of Double has no Double`() throws {
        #expect(try number("1e400").double == nil)
        #expect(try number("-1e99999999999999999999").double == nil)
        #expect(try number("1e-400").double == 0)
        #expect(try number("1.10").double == 1.1)
        #expect(JSON.Number(Double.infinity) == nil)
        #expect(JSON.Number(Double.nan) == nil)
        #expect(JSON.Number(2.0)?.text == "2")
        #expect(JSON.Number(1e300)?.text == "1e+300")
    }

    @Test func `names are compared by code units, and members keep their order`() throws {
        let text = "{\"z\":1,\"\u{E9}\":2,\"e\u{301}\":3,\"a\":4}"
        let members = try #require(json(text).members)
        #expect(members["\u{E9}"] == .number(2))
        #expect(members["e\u{301}"] == .number(3))
        #expect(members.names.map { Array($0.utf8) } == ["z", "\u{E9}", "e\u{301}", "a"].map { Array($0.utf8) })
        #expect(try json(text).description.utf8.elementsEqual(text.utf8))
    }

    @Test func `objects are equal if they have the same members in any order`() throws {
        #expect(try json(#"{"a":1,"b":[2]}"#) == json(#"{"b":[2],"a":1}"#))
        #expect(try json(#"{"a":1}"#) != json(#"{"a":1.0}"#))
        #expect(try json(#"{"a":1}"#).hashValue == json(#" { "a" : 1 } "#).hashValue)
    }

    @Test func `a member is replaced in its place, and removed`() {
        var object: JSON.Object = ["a": .null, "b": .boolean(true), "a": .number(1)]
        #expect(JSON.object(object).description == #"{"a":1,"b":true}"#)
        object["a"] = nil
        object["c"] = .string("x")
        object["none"] = nil
        #expect(JSON.object(object).description == #"{"b":true,"c":"x"}"#)
        #expect(object.count == 2)
    }

    @Test func `strict rules refuse a repeated name; lenient ones list it, and the last counts`() throws {
        let text = #"{"a":1,"b":{"c":1,"\u0063":2},"a":3}"#
        #expect(throws: JSON.Failure(reason: .repeatedName, position: 18)) { try json(text) }
        let (read, names) = try JSON.listingRepeatedNames(Array(text.utf8))
        #expect(read.description == #"{"a":3,"b":{"c":2}}"#)
        #expect(names == ["c", "a"])
    }

    @Test func `strict rules refuse half of a surrogate pair; lenient ones replace it`() throws {
        #expect(try json(#""\ud83d\ude00""#) == .string("😀"))
        for (text, read) in [
            (#""\ud83d""#, "\u{FFFD}"), (#""\ud83dx""#, "\u{FFFD}x"), (#""\ude00\ud83d""#, "\u{FFFD}\u{FFFD}"),
            (#""\ud83d\u0041""#, "\u{FFFD}A"), (#""\ud83d\n""#, "\u{FFFD}\n"),
        ] {
            #expect(throws: JSON.Failure(reason: .loneSurrogate, position: 1)) { try json(text) }
            #expect(try json(text, .lenient) == .string(read))
        }
    }

    @Test(
        arguments: [
            ("", 0), (" ", 1), ("01", 1), ("1.", 2), (".5", 0), ("+1", 0), ("1e", 2), ("[1,]", 3), ("[1 2]", 3),
            (#"{"a":1,}"#, 7), (#"{"a"}"#, 4), ("{a:1}", 1), ("tru", 0), ("True", 0), ("NaN", 0), ("\"a", 2),
            (#""\x""#, 2), (#""\u12g4""#, 5), ("\"\u{1}\"", 1), ("\"a\nb\"", 2), ("{} {}", 3), ("\u{FEFF}{}", 0),
            ("[1}", 2), ("]", 0), (#""\"#, 2), ("'a'", 0), ("[1]//", 3),
        ]
    )
    func `an error names its byte`(_ text: String, _ position: Int) {
        #expect(throws: JSON.Failure(reason: .malformed, position: position)) { try json(text) }
        #expect(throws: JSON.Failure(reason: .malformed, position: position)) { try json(text, .lenient) }
    }

    @Test(arguments: [[0xC3, 0x28], [0xED, 0xA0, 0x80], [0xC0, 0xAF], [0xFF]])
    func `bytes that are not UTF-8 are refused`(_ bytes: [UInt8]) {
        let text = [UInt8(ascii: "\""), UInt8(ascii: "a")] + bytes + [UInt8(ascii: "\"")]
        #expect(throws: JSON.Failure(reason: .notUTF8, position: 2)) { try JSON(text) }
    }

    @Test func `depth and the number of values are limited, without recursion`() throws {
        func nested(_ depth: Int) -> String {
            String(repeating: "[", count: depth) + String(repeating: "]", count: depth)
        }
        #expect(try json(nested(512)).description == nested(512))
        #expect(throws: JSON.Failure(reason: .tooDeep, position: 512)) { try json(nested(1_000_000)) }
        let rules = JSON.Rules(isLenient: false, maximumDepth: 2, maximumValues: 3)
        #expect(try json("[[1]]", rules).description == "[[1]]")
        #expect(throws: JSON.Failure(reason: .tooDeep, position: 2)) { try json("[[[", rules) }
        #expect(throws: JSON.Failure(reason: .tooManyValues, position: 7)) { try json("[1, 2, 3]", rules) }
    }

    @Test func `strings are written on one line with the escapes that JSON requires`() throws {
        let text = "\u{0}\u{1F}\n\r\t\u{8}\"\\/\u{7F}\u{2028}😀é"
        let written = JSON.string(text).description
        #expect(written == "\"\\u0000\\u001f\\n\\r\\t\\u0008\\\"\\\\/\u{7F}\u{2028}😀é\"")
        #expect(try json(written) == .string(text))
    }

    @Test func `an object of many members is read in a time that grows with its size`() throws {
        let text = "{" + (0..<50_000).map { "\"key\($0)\":\($0)" }.joined(separator: ",") + "}"
        let members = try #require(json(text).members)
        #expect(members.count == 50_000)
        #expect(members["key49999"] == .number(49_999))
        #expect(JSON.object(members).description == text)
    }
}
