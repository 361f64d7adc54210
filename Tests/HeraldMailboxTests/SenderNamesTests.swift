import HeraldModel
import Testing

@testable import HeraldMailbox

struct SenderNamesTests {
    @Test func `a name keeps its number, and a number its name`() {
        let names = SenderNames()
        #expect(names.number(of: "a") == SenderNumber(1) && names.number(of: "b") == SenderNumber(2))
        #expect(names.number(of: "a") == SenderNumber(1))
        #expect(names.name(of: SenderNumber(2)) == "b")
        #expect(names.name(of: .unknown) == nil && names.name(of: SenderNumber(3)) == nil)
        #expect(names.number(of: "") == .unknown)
        #expect(names.names(after: 0, upTo: SenderNumber(1)) == ["a"])
        #expect(names.names(after: 1, upTo: SenderNumber(9)) == ["b"])
        #expect(names.names(after: 2, upTo: SenderNumber(2)) == [])
    }

    @Test func `names are cut, and a full table has no number for further ones`() {
        let names = SenderNames()
        let long = String(repeating: "é", count: 100)
        #expect(names.name(of: names.number(of: long))?.utf8.count == 128)
        names.load((1...SenderNames.capacity).map { "\($0)" })
        #expect(names.number(of: "65535") == SenderNumber(.max))
        #expect(names.number(of: "another") == .unknown)
    }
}
