import HeraldModel
import Testing

@testable import HeraldGateway

struct InFlightNotificationsTests {
    private func reference(_ identifier: UInt32) -> InFlightNotifications.Reference {
        InFlightNotifications.Reference(identifier: identifier, isAnswered: true)
    }

    private func inFlight(_ identifiers: ClosedRange<UInt32>, limit: Int = 100) -> InFlightNotifications {
        var inFlight = InFlightNotifications(limit: limit)
        for identifier in identifiers { inFlight.open(reference(identifier)) }
        return inFlight
    }

    @Test func `a failure is reported only once everything before it is settled`() {
        var inFlight = inFlight(1...3)
        inFlight.refuse(reference(4), .invalidToken)
        #expect(inFlight.failure == nil)
        #expect(!inFlight.hasRoom)
        for number in [2, 0] as [UInt64] { inFlight.settle(number) }
        #expect(inFlight.failure == nil)
        #expect(inFlight.lastAccepted == 1)
        inFlight.settle(1)
        #expect(inFlight.failure == InFlightNotifications.Failure(reference: reference(4), status: .invalidToken))
        #expect(inFlight.lastAccepted == 3)
    }

    @Test func `reports the first notification that failed, whichever failure came first`() {
        var inFlight = inFlight(1...5)
        inFlight.refuse(reference(6), .invalidToken)
        inFlight.settle(3, refusedWith: .processingError)
        inFlight.settle(0)
        inFlight.settle(1, refusedWith: .processingError)
        #expect(inFlight.failure == InFlightNotifications.Failure(reference: reference(2), status: .processingError))
        inFlight.settle(2)
        inFlight.settle(4)
        #expect(inFlight.failure?.reference == reference(2))
        #expect(inFlight.lastAccepted == 1)
    }

    @Test func `is full at its limit, and has room again once the oldest are settled`() {
        var inFlight = inFlight(1...10, limit: 10)
        #expect(!inFlight.hasRoom)
        inFlight.settle(5)
        #expect(!inFlight.hasRoom)
        inFlight.settle(0)
        #expect(inFlight.hasRoom)
        #expect(inFlight.nextNumber == 10)
    }

    @Test func `settles a notification once, and only if it is open`() {
        var inFlight = inFlight(1...2)
        let wasOpen = inFlight.settle(0)
        #expect(wasOpen)
        for number in [0, 2, .max] as [UInt64] {
            let isOpen = inFlight.settle(number)
            #expect(!isOpen)
        }
        #expect(inFlight.count == 1)
    }

    @Test func `a notification that is accepted at once waits for earlier ones`() {
        var inFlight = inFlight(1...1)
        inFlight.accept(reference(2))
        #expect(inFlight.lastAccepted == nil)
        inFlight.settle(0)
        #expect(inFlight.lastAccepted == 2)
        #expect(inFlight.count == 0)
    }

    @Test func `a notification without identifier does not change the last accepted identifier`() {
        var inFlight = InFlightNotifications(limit: 10)
        inFlight.accept(reference(7))
        inFlight.accept(InFlightNotifications.Reference(identifier: nil, isAnswered: false))
        #expect(inFlight.lastAccepted == 7)
    }

    @Test func `ten thousand notifications settle in any order within the limit`() {
        var inFlight = InFlightNotifications(limit: 64)
        var open: [UInt64] = []
        var taken: UInt32 = 0
        while taken < 10_000 {
            while inFlight.hasRoom, taken < 10_000 {
                open.append(inFlight.nextNumber)
                inFlight.open(reference(taken))
                taken += 1
            }
            open.shuffle()
            for _ in 0..<Int.random(in: 1...open.count) { if let number = open.popLast() { inFlight.settle(number) } }
        }
        for number in open { inFlight.settle(number) }
        #expect(inFlight.count == 0)
        #expect(inFlight.lastAccepted == 9999)
        #expect(inFlight.nextNumber == 10_000)
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

extension InFlightNotifications {
    /// Adds a notification that is accepted at once.
    fileprivate mutating func accept(_ reference: Reference) {
        let number = nextNumber
        open(reference)
        settle(number)
    }
}
