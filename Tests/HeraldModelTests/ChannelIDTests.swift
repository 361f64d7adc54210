import Testing

@testable import HeraldModel

struct ChannelIDTests {
    @Test(arguments: [
        (ChannelID(high: 0, low: 0), "AAAAAAAAAAAAAAAAAAAAAA==", "AAAAAAAAAAAAAAAAAAAAAA=="),
        (ChannelID(high: .max, low: .max), "/////////////////////w==", "_____________________w=="),
        (
            ChannelID(high: 0x0001_0203_0405_0607, low: 0x0809_0A0B_0C0D_0EFB), "AAECAwQFBgcICQoLDA0O+w==",
            "AAECAwQFBgcICQoLDA0O-w=="
        ),
    ])
    func `an identifier is base64 for providers, and has the other alphabet in a topic`(
        id: ChannelID,
        base64: String,
        level: String
    ) {
        #expect(id.base64 == base64)
        #expect(id.topicLevel == level)
        #expect(ChannelID.read(base64.utf8) == .channel(id))
        #expect(ChannelID.read(level.utf8) == .channel(id))
        #expect(ChannelID.read(base64.dropLast(2).utf8) == .channel(id))
        #expect(ChannelID(topicLevel: level) == id)
    }

    @Test(arguments: ["dHN0LXNyY2gtY2hubA==", "AAAA", "YQ==", String(repeating: "A", count: 64)])
    func `base64 of another length is an unknown identifier`(text: String) {
        #expect(ChannelID.read(text.utf8) == .unknown)
    }

    @Test(arguments: [
        "", "=", "==", "A", "A===", "AAAAA", "AA=A", "AA=", "AAB=", "a b=", "AAA.", "Ä===", "AAAAAAAAAAAAAAAAAAAAAB==",
        String(repeating: "A", count: 65),
    ])
    func `what is not base64, or longer than 64 characters, is malformed`(text: String) {
        #expect(ChannelID.read(text.utf8) == .malformed)
    }

    @Test(arguments: ["/////////////////////w==", "_____________________w", "AAAA", ""])
    func `a channel topic has one spelling`(text: String) {
        #expect(ChannelID(topicLevel: text) == nil)
    }

    @Test func `new identifiers differ`() {
        #expect(Set((0..<1000).map { _ in ChannelID.random() }).count == 1000)
    }
}
