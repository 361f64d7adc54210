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

    @Test func `requests are counted together, with the time of the first and of the last`() {
        let use = SenderUse()
        let sender = SenderNumber(3)
        #expect(use.counts(of: sender) == nil)
        use.count(sender, accepted: 5, at: WallTime(seconds: 1))
        use.count(sender, refused: 1, at: WallTime(seconds: 2))
        use.count(sender, accepted: 2, at: WallTime(seconds: 3))
        use.count(.unknown, accepted: 1, at: WallTime(seconds: 4))
        let counts = SenderUse.Counts(first: WallTime(seconds: 1), last: WallTime(seconds: 3), requests: 8, refused: 1)
        #expect(use.counts(of: sender) == counts)
        #expect(use.counts(of: SenderNumber(2)) == nil && use.counts(of: .unknown) == nil)
    }
}
