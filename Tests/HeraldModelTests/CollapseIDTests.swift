import HeraldModel
import Testing

@Suite struct CollapseIDTests {
    @Test(arguments: [
        "x", "a b", "größer", "👋🏽", "\u{FEFF}x", "\u{200D}", "\u{E000}", "\u{A0}", "\u{202E}", "\u{10FFFD}",
    ])
    func `printable text of any language is an identifier`(text: String) {
        #expect(CollapseID(text)?.text == text)
        #expect(Array(text.utf8).withUnsafeBytes { CollapseID(utf8: $0) }?.text == text)
    }

    @Test func `1 to 64 bytes, not characters`() {
        #expect(
            CollapseID(String(repeating: "x", count: 64)) != nil && CollapseID(String(repeating: "ü", count: 32)) != nil
        )
        #expect(CollapseID("") == nil && CollapseID(String(repeating: "x", count: 65)) == nil)
        #expect(CollapseID(String(repeating: "ü", count: 32) + "x") == nil)
    }

    @Test func `MQTT 5 §1.5.4: no control character and no non-character, wherever it stands`() {
        var forbidden = Array(0...0x1F) + Array(0x7F...0x9F) + Array(0xFDD0...0xFDEF)
        for plane in 0...0x10 { forbidden += [plane << 16 | 0xFFFE, plane << 16 | 0xFFFF] }
        for value in forbidden.compactMap(Unicode.Scalar.init) {
            #expect(!value.isAllowedInMQTT)
            for text in ["\(value)", "a\(value)", "\(value)a", "ü\(value)ü"] {
                #expect(CollapseID(text) == nil, "\(value.value)")
            }
        }
        for value in [0x20, 0x7E, 0xA0, 0xD7FF, 0xE000, 0xFDCF, 0xFDF0, 0xFFFD, 0x10000, 0x1FFFD, 0x10FFFD] {
            #expect(Unicode.Scalar(value).map(\.isAllowedInMQTT) == true, "\(value)")
        }
    }

    @Test(arguments: [" x", "x ", " ", "\tx", "x\t"])
    func `RFC 9113 §8.2.1: no space at either end`(text: String) {
        #expect(CollapseID(text) == nil)
    }

    @Test(arguments: [[0xFF], [0xC3], [0xED, 0xA0, 0x80], [0xC0, 0xAF], [0xF4, 0x90, 0x80, 0x80]] as [[UInt8]])
    func `what is not UTF-8 is none`(bytes: [UInt8]) {
        #expect(bytes.withUnsafeBytes { CollapseID(utf8: $0) } == nil)
        #expect((Array("a".utf8) + bytes).withUnsafeBytes { CollapseID(utf8: $0) } == nil)
    }
}
