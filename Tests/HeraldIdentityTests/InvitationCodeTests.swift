import HeraldIdentity
import Testing

struct InvitationCodeTests {
    private let authority = Array("a certificate".utf8)

    @Test func `a code is nine groups of five without similar characters`() {
        for _ in 0..<50 {
            let groups = InvitationCode(authority: authority).text.split(separator: "-")
            #expect(groups.map(\.count) == Array(repeating: 5, count: 9))
            #expect(groups.joined().allSatisfy { "0123456789ABCDEFGHJKMNPQRSTVWXYZ".contains($0) })
        }
    }

    @Test func `a copied code is the same code`() throws {
        let code = InvitationCode(authority: authority)
        #expect(try InvitationCode(code.text) == code)
        #expect(try InvitationCode(" " + code.text.lowercased().replacing("-", with: " ") + "\n") == code)
        #expect(try InvitationCode(code.text.replacing("-", with: "")) == code)
        let sloppy = code.text.replacing("0", with: "O").replacing("1", with: "l")
        #expect(try InvitationCode(sloppy) == code)
        #expect(try InvitationCode(code.text).digest == code.digest)
    }

    @Test func `all codes are different, and have the authority's fingerprint`() {
        let codes = (0..<100).map { _ in InvitationCode(authority: authority) }
        #expect(Set(codes.map(\.text)).count == 100)
        #expect(Set(codes.map(\.digest)).count == 100)
        #expect(codes.allSatisfy { $0.names(authority) && !$0.names(Array("another".utf8)) })
    }

    @Test func `every wrong character and every swap of neighbours is detected`() {
        let text = Array(InvitationCode(authority: authority).text)
        for place in text.indices where text[place] != "-" {
            for other in "0123456789ABCDEFGHJKMNPQRSTVWXYZ" where other != text[place] {
                var wrong = text
                wrong[place] = other
                #expect(throws: InvitationCode.ParseError.checksum) { try InvitationCode(String(wrong)) }
            }
            let next = place + 1
            if next < text.count, text[next] != "-", text[next] != text[place] {
                var wrong = text
                wrong.swapAt(place, next)
                #expect(throws: InvitationCode.ParseError.checksum) { try InvitationCode(String(wrong)) }
            }
        }
    }

    @Test func `invalid codes have different errors`() {
        let text = InvitationCode(authority: authority).text
        #expect(throws: InvitationCode.ParseError.length(0)) { try InvitationCode("") }
        #expect(throws: InvitationCode.ParseError.length(44)) { try InvitationCode(text.dropLast()) }
        #expect(throws: InvitationCode.ParseError.length(46)) { try InvitationCode(text + "0") }
        #expect(throws: InvitationCode.ParseError.length(4000)) {
            try InvitationCode(String(repeating: "-", count: 4000))
        }
        #expect(throws: InvitationCode.ParseError.character(1)) { try InvitationCode("U" + text.dropFirst()) }
        #expect(throws: InvitationCode.ParseError.character(3)) {
            try InvitationCode(text.prefix(2) + "ü" + text.dropFirst(3))
        }
        #expect(throws: InvitationCode.ParseError.character(1)) { try InvitationCode("\u{0}" + text.dropFirst()) }
    }

    @Test func `the description of a code does not have the code`() {
        let code = InvitationCode(authority: authority)
        #expect(!"\(code)".contains(code.text.suffix(17)))
    }
}
