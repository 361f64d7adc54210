import HeraldModel
import HeraldTestSupport
import Testing

@testable import HeraldMailbox

@Suite struct LimitTests {
    @Test func `a token that is sent too many at once is refused, and another one is not`() async throws {
        let office = try await Office {
            $0.tokenBurst = 5
            $0.tokenRate = 1
        }
        for _ in 1...5 { #expect(office.post(.alert).0 == .pending) }
        #expect(office.post(.alert).0 == .refused(.tooManyRequests, since: nil))
        office.clock.advance(by: .seconds(1))
        #expect(office.post(.alert).0 == .pending)
        #expect(office.post(.alert).0 == .refused(.tooManyRequests, since: nil))
        // Nothing of what was refused is on record.
        try await office.settle()
        #expect(office.states.count { $0 == .received } == 6)
    }

    @Test func `past the limit of memory notifications are refused, and taken again when there is room`() async throws {
        let office = try await Office {
            $0.notificationBytes = 10 * 514
            $0.tokenRate = 0
        }
        var accepted = 0
        for _ in 0..<1000 where office.post(.alert).0 == .pending { accepted += 1 }
        #expect(accepted == 10)
        #expect(!office.postOffice.isAccepting && office.postOffice.load.current == 10 * 514)
        try await office.settle()
        #expect(office.postOffice.isAccepting && office.postOffice.load.current == 0)
        #expect(office.post(.alert).0 == .pending)
    }

    @Test func `past half of it a device that acknowledges nothing holds next to nothing`() async throws {
        let office = try await Office {
            $0.notificationBytes = 40 * 514
            $0.tokenRate = 0
        }
        let link = try await office.connect()
        for _ in 0..<1000 {
            #expect(office.post(.alert, priority: .immediate).0 == .pending)
            try await office.settle()
        }
        // Twenty to half of the limit; what came later waits on the disk, the newest alone.
        #expect(link.take().count == 20)
        #expect(office.postOffice.load.current <= 21 * 514 && office.store.count == 1)
    }

    @Test func `a store that takes no more refuses what no app could read as well`() async throws {
        let office = try await Office()
        office.store.setAccepting(false)
        let (_, letter) = office.post()
        let decision = office.postOffice.discard(letter, generation: 0, as: .discardedUndeliverable)
        #expect(decision == .refused(.serviceUnavailable, since: nil))
    }
}

@Suite struct FailedReadTests {
    @Test func `what could not be read is read again by the clock, without anything else happening`() async throws {
        let office = try await Office()
        _ = office.post(.alert)
        try await office.settle()
        office.store.setFailsReads(true)
        let link = try await office.connect()
        try await office.pass(.seconds(1))
        #expect(link.take().isEmpty)
        office.store.setFailsReads(false)
        // A read that the office's own tick has begun before may still fail.
        var deliveries = link.take()
        for _ in 0..<3 where deliveries.isEmpty {
            try await office.pass(.seconds(1))
            deliveries = link.take()
        }
        #expect(deliveries.count == 1)
    }
}

@Suite struct FateTests {
    @Test func `the fate of a notification is told`() async throws {
        let office = try await Office()
        let (_, away) = office.post(.alert)
        #expect(away.fate == Fate(state: .storedDeviceOffline))
        let (_, newer) = office.post(.alert)
        try await office.settle()
        #expect(newer.fate == Fate(state: .storedDeviceOffline))
        let link = try await office.connect()
        office.acknowledge(link.take())
        let (_, quick) = office.post(.alert)
        office.acknowledge(link.take())
        #expect(quick.fate == Fate(state: .delivered))
        let (_, slow) = office.post(.alert)
        office.postOffice.tick()
        office.postOffice.tick()
        #expect(slow.fate == Fate(state: .storedUnacknowledged))
        try await office.registry.setEnabled(false, for: office.slot)
        let (_, off) = office.post(.alert)
        #expect(off.fate == Fate(state: .discardedDisabled))
    }

    @Test func `what waits when the app is switched off is discarded, and does not come back when it is switched on`()
        async throws
    {
        let office = try await Office()
        _ = office.post(.alert)
        try await office.settle()
        try await office.registry.setEnabled(false, for: office.slot)
        #expect(office.store.count == 0 && office.states.last == .discardedDisabledFromStorage)
        try await office.registry.setEnabled(true, for: office.slot)
        let link = try await office.connect()
        #expect(link.take().isEmpty)
    }

    @Test func `what was sent and not acknowledged when the app was switched off is discarded with the connection`()
        async throws
    {
        let office = try await Office()
        let link = try await office.connect()
        _ = office.post(.alert)
        #expect(link.take().count == 1)
        try await office.registry.setEnabled(false, for: office.slot)
        office.postOffice.detach(office.slot.device, fence: 1)
        try await office.settle()
        #expect(office.store.count == 0 && office.states.last == .discardedDisabled)
    }
}
