import HeraldModel
import Testing

@testable import HeraldGateway

struct BinaryWindowTests {
    private func origin(_ identifier: UInt32) -> BinaryWindow.Origin {
        BinaryWindow.Origin(identifier: identifier, isAnswered: true)
    }

    private func window(_ identifiers: ClosedRange<UInt32>, limit: Int = 100) -> BinaryWindow {
        var window = BinaryWindow(limit: limit)
        for identifier in identifiers { window.open(origin(identifier)) }
        return window
    }

    @Test func `nothing is said of one before everything before it is settled`() {
        var window = window(1...3)
        window.refuse(origin(4), .invalidToken)
        #expect(window.failure == nil)
        #expect(!window.hasRoom)
        for number in [2, 0] as [UInt64] { window.settle(number) }
        #expect(window.failure == nil)
        #expect(window.lastAccepted == 1)
        window.settle(1)
        #expect(window.failure == BinaryWindow.Failure(origin: origin(4), status: .invalidToken))
        #expect(window.lastAccepted == 3)
    }

    @Test func `the first that failed is the one that is named, whenever it was found out`() {
        var window = window(1...5)
        window.refuse(origin(6), .invalidToken)
        window.settle(3, refusedWith: .processingError)
        window.settle(0)
        window.settle(1, refusedWith: .processingError)
        #expect(window.failure == BinaryWindow.Failure(origin: origin(2), status: .processingError))
        window.settle(2)
        window.settle(4)
        #expect(window.failure?.origin == origin(2))
        #expect(window.lastAccepted == 1)
    }

    @Test func `it is full at its limit, and has room again as the oldest are settled`() {
        var window = window(1...10, limit: 10)
        #expect(!window.hasRoom)
        window.settle(5)
        #expect(!window.hasRoom)
        window.settle(0)
        #expect(window.hasRoom)
        #expect(window.nextNumber == 10)
    }

    @Test func `a receipt is taken once, and only of what is open`() {
        var window = window(1...2)
        let wasOpen = window.settle(0)
        #expect(wasOpen)
        for number in [0, 2, .max] as [UInt64] {
            let isOpen = window.settle(number)
            #expect(!isOpen)
        }
        #expect(window.count == 1)
    }

    @Test func `what is accepted at once waits for those before it`() {
        var window = window(1...1)
        window.accept(origin(2))
        #expect(window.lastAccepted == nil)
        window.settle(0)
        #expect(window.lastAccepted == 2)
        #expect(window.count == 0)
    }

    @Test func `one without an identifier leaves the last one that had one`() {
        var window = BinaryWindow(limit: 10)
        window.accept(origin(7))
        window.accept(BinaryWindow.Origin(identifier: nil, isAnswered: false))
        #expect(window.lastAccepted == 7)
    }

    @Test func `ten thousand pass through it, in any order within the limit`() {
        var window = BinaryWindow(limit: 64)
        var open: [UInt64] = []
        var taken: UInt32 = 0
        while taken < 10_000 {
            while window.hasRoom, taken < 10_000 {
                open.append(window.nextNumber)
                window.open(origin(taken))
                taken += 1
            }
            open.shuffle()
            for _ in 0..<Int.random(in: 1...open.count) { if let number = open.popLast() { window.settle(number) } }
        }
        for number in open { window.settle(number) }
        #expect(window.count == 0)
        #expect(window.lastAccepted == 9999)
        #expect(window.nextNumber == 10_000)
    }
}

struct BinaryIdentifierTests {
    @Test func `an identifier ends with the provider's own, and is of version 8`() {
        var ids = IdentifierSource()
        let first = ids.identifier(ending: 0x0102_0304)
        let second = ids.identifier(ending: 0x0102_0304)
        #expect(first != second)
        for id in [first, second] {
            #expect("\(id)".hasSuffix("01020304"))
            #expect(Array("\(id)")[14] == "8")
            #expect("89ab".contains(Array("\(id)")[19]))
        }
    }
}
