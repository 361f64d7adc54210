import HeraldModel
import Testing

@Suite struct PayloadScannerTests {
    @Test(arguments: [
        (#"{"aps":{"alert":"hi"}}"#, true),
        (#" { "x" : [1, -2.5e+3, true, false, null, "a\u00e9\n"] , "aps" : { } } "#, true),
        (#"{}"#, false),
        (#"{"aps":1}"#, false),
        (#"{"x":{"aps":{}}}"#, false),
        (#"{"\u0061p\u0073":{}}"#, true),
        (#"{"aps":{},"aps":null}"#, false),
        (#"{"mdm":"magic"}"#, false),
        ("{\"k\":\"日本語 🎈 \u{10FFFF}\"}", false),
    ])
    func `an object is an object, with or without aps`(payload: String, hasAps: Bool) {
        #expect(PayloadScanner.scan(Array(payload.utf8)) == .object(hasAps: hasAps))
    }

    @Test(arguments: [
        (#"{"aps":{},"herald":{"tag":"x"}}"#, true),
        (#"{"herald":null}"#, true),
        (#"{"\u0068erald":1,"aps":{}}"#, true),
        (#"{"aps":{"herald":{}}}"#, false),
        (#"{"x":"herald"}"#, false),
        (#"{"heralds":{}}"#, false),
    ])
    func `a survey finds the member herald at the top level alone`(payload: String, hasHerald: Bool) {
        #expect(PayloadScanner.survey(Array(payload.utf8)).hasHerald == hasHerald)
    }

    @Test(arguments: ["[]", #""aps""#, "1", "null", " true "])
    func `JSON of another kind is not an object`(payload: String) {
        #expect(PayloadScanner.scan(Array(payload.utf8)) == .notAnObject)
    }

    @Test(arguments: [
        "", " ", "{", "}", "{]", "[}", #"{"a"}"#, #"{"a":}"#, #"{"a":1,}"#, #"{,}"#, #"{a:1}"#, "{} {}", "{}x",
        #"{"a":01}"#, #"{"a":1.}"#, #"{"a":.5}"#, #"{"a":1e}"#, #"{"a":-}"#, #"{"a":+1}"#, #"{"a":nul}"#, #"{"a":"x}"#,
        #"{"a":"\x"}"#, #"{"a":"\u12g4"}"#, #"{"a":"\u12"#, "{\"a\":\"\u{01}\"}", "{\"a\":\"line\nbreak\"}",
        "\u{FEFF}{}",
        #"{"a":[1,]}"#, #"{"a":[,1]}"#, #"{"a" 1}"#, #"{"a":1 "b":2}"#, #"{"a":NaN}"#, #"{'a':1}"#,
    ])
    func `what is not JSON is malformed`(payload: String) {
        guard case .malformed = PayloadScanner.scan(Array(payload.utf8)) else {
            Issue.record("accepted: \(payload)")
            return
        }
    }

    @Test(
        arguments: [
            [0xC0, 0xAF], [0xC1, 0xBF], [0xE0, 0x80, 0x80], [0xED, 0xA0, 0x80], [0xF0, 0x80, 0x80, 0x80],
            [0xF4, 0x90, 0x80, 0x80], [0xF5, 0x80, 0x80, 0x80], [0x80], [0xFF], [0xC3], [0xE2, 0x82],
        ] as [[UInt8]]
    )
    func `what is not UTF-8 is malformed`(bytes: [UInt8]) {
        let payload = Array(#"{"a":""#.utf8) + bytes + Array(#""}"#.utf8)
        #expect(PayloadScanner.scan(payload) == .malformed(at: 6))
    }

    @Test func `only the size limits the depth`() {
        let levels = 2040
        let payload = #"{"a":"# + String(repeating: "[", count: levels) + String(repeating: "]", count: levels) + "}"
        #expect(PayloadScanner.scan(Array(payload.utf8)) == .object(hasAps: false))
        let wrong = #"{"a":"# + String(repeating: "[", count: levels) + String(repeating: "]", count: levels - 1) + "}}"
        guard case .malformed = PayloadScanner.scan(Array(wrong.utf8)) else {
            Issue.record("a bracket too few was accepted")
            return
        }
    }

    @Test func `brackets are remembered across the 64 levels of a word`() {
        for levels in [63, 64, 65, 127, 128, 129] {
            var text = "1"
            for level in 0..<levels { text = level.isMultiple(of: 2) ? "[\(text)]" : "{\"k\":\(text)}" }
            #expect(PayloadScanner.scan(Array("{\"v\":\(text)}".utf8)) == .object(hasAps: false))
        }
    }

    @Test func `a control character inside a string is always noticed`() {
        let payload = Array(#"{"aps":{"alert":"a text of some length, so that eight bytes at a time are read"}}"#.utf8)
        for index in 17..<(payload.count - 3) {
            var hostile = payload
            hostile[index] = 0x1F
            guard case .malformed(let position) = PayloadScanner.scan(hostile) else {
                Issue.record("accepted a control character at \(index)")
                return
            }
            #expect(position == index)
        }
    }
}
