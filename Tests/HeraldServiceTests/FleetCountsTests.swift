import HeraldModel
import HeraldTrust
import Testing

@testable import HeraldService

/// The counts of devices behind the fleet's metrics.
@Suite struct FleetCountsTests {
    private static let day = 86_400.0
    private let now = WallTime(seconds: 1_800_000_000)

    private func ago(_ days: Double) -> WallTime { now - .seconds(days * Self.day) }

    private func device(
        created: Double = 400,
        seen: Double? = nil,
        ends: Double = 300,
        revoked: Bool = false
    ) throws -> EnrolledDevice {
        let id = try #require(DeviceID("lamp"))
        var device = EnrolledDevice(
            id: id,
            name: nil,
            certificate: EnrolledDevice.Certificate(serial: "01", expires: now + .seconds(ends * Self.day)),
            created: ago(created),
            revoked: revoked ? now : nil
        )
        device.sighting = seen.map { DeviceSighting(device: id, at: ago($0), address: "") }
        return device
    }

    private func counts(
        _ devices: [(EnrolledDevice, isConnected: Bool)],
        lifetime days: Double = 365
    ) -> FleetCounts {
        var counts = FleetCounts(now: now, lifetime: .seconds(days * Self.day))
        for (device, isConnected) in devices { counts.add(device, isConnected: isConnected) }
        return counts
    }

    @Test func `a device that is away counts in each class that it has reached`() throws {
        let seen = try counts([0, 0.9, 1, 6.9, 7, 29, 30, 100].map { (try device(seen: $0), false) })
        #expect(seen.unseen == [1: 6, 7: 4, 30: 2] && seen.enrolled == 8)
        // In a cluster it was another node that has seen it since.
        var elsewhere = try device(seen: 30)
        elsewhere.seen = ago(0.5)
        #expect(counts([(elsewhere, false)]).unseen.isEmpty)
        // A device that never came has been away since its enrollment.
        #expect(try counts([(device(created: 8), false), (device(created: 0), false)]).unseen == [1: 1, 7: 1])
    }

    @Test func `a connected device is not away, however long it has been connected, and a revoked one counts nowhere`()
        throws
    {
        let connected = try counts([(device(seen: 90), true)])
        #expect(connected.unseen == [:] && connected.enrolled == 1)
        let revoked = try counts([(device(seen: 90, ends: 3, revoked: true), false)])
        #expect(revoked.unseen == [:] && revoked.enrolled == 0 && revoked.ending == 0)
    }

    @Test func `certificates that should have been renewed are told from those that are over`() throws {
        let ends = [-100.0, 0, 0.1, 29.9, 30, 300]
        let year = try counts(ends.map { (try device(ends: $0), true) })
        #expect(year.ended == 2 && year.ending == 2)
        // A device renews at two thirds of a life: what is left of twelve days then is four.
        let days = try counts([2.9, 3, 4].map { (try device(ends: $0), true) }, lifetime: 12)
        #expect(days.ending == 1 && days.ended == 0)
    }
}
