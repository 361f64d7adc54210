import HeraldModel
import Testing

@Suite struct PushTokenTests {
    @Test(arguments: [1, 2, 31, 32, 33, 54, 80, 100])
    func `a token of 1 to 100 bytes is read in either case and written in lower case`(_ length: Int) throws {
        let text = String(repeating: "aB", count: length)
        let token = try #require(PushToken(text))
        #expect(token.hex == text.lowercased())
        #expect(token.bytes == [UInt8](repeating: 0xAB, count: length))
        #expect(token.byteCount == length)
        #expect(token == PushToken(bytes: token.bytes) && token == PushToken(text.uppercased()))
        #expect((token.own != nil) == (length == 32))
    }

    @Test(arguments: ["", "a", "abc", "zz", "ab ", " ab", "ab\n", "0x", "é", String(repeating: "ab", count: 101)])
    func `another text is not a token`(_ text: String) {
        #expect(PushToken(text) == nil)
    }

    @Test func `Herald's own token is one of 32 bytes`() throws {
        let own = DeviceToken(words: (1, 2, 3, 4))
        let token = PushToken(own)
        #expect(token.own == own && token == PushToken(own.hex) && token == PushToken(bytes: own.bytes))
        #expect(PushToken(bytes: [UInt8]()) == nil && PushToken(bytes: [UInt8](repeating: 0, count: 101)) == nil)
    }

    @Test(arguments: [1, 4, 32, 100]) func `a description does not contain the whole token`(_ length: Int) throws {
        let token = try #require(PushToken(bytes: [UInt8](repeating: 0xAB, count: length)))
        #expect(!token.description.contains(token.hex) && token.description.utf8.count <= 8 + 3)
    }
}
