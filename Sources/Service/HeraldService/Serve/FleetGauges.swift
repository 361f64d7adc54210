import CoreMetrics
import HeraldActivation
import HeraldMailbox
import HeraldModel
import HeraldTrust
import Logging

/// Counts of the ledger's devices, without the revoked ones.
struct FleetCounts: Hashable, Sendable {
    /// The classes of the devices that were not seen, in days.
    static let days = [1, 7, 30]
    private static let day = Duration.seconds(86_400)

    let now: WallTime
    /// The time before its end within which a certificate counts as ending.
    private let notice: Duration
    private(set) var enrolled = 0
    /// Devices that are not connected, by the days for which nobody has seen them: each counts in all smaller classes, too.
    private(set) var unseen: [Int: Int] = [:]
    /// Devices whose newest certificate ends soon: it should have been renewed.
    private(set) var ending = 0
    /// Devices whose newest certificate has ended.
    private(set) var ended = 0

    /// A device renews at two thirds of a certificate's lifetime, so the last quarter at most counts.
    init(now: WallTime, lifetime: Duration) {
        self.now = now
        notice = min(Self.day * 30, lifetime / 4)
    }

    mutating func add(_ device: EnrolledDevice, isConnected: Bool) {
        guard device.revoked == nil else { return }
        enrolled += 1
        if device.expires <= now { ended += 1 } else if device.expires - now < notice { ending += 1 }
        guard !isConnected else { return }
        let absence = now - (device.lastSeen ?? device.created)
        for days in Self.days where absence >= Self.day * days { unseen[days, default: 0] += 1 }
    }
}

/// The gauges of the fleet, which are read from the ledger from time to time.
struct FleetGauges: Sendable {
    /// Devices that are read in one go.
    private static let part = 1000

    let assembly: ServiceAssembly
    private let enrolled = Gauge(label: "herald_devices_enrolled")
    private let unseen = FleetCounts.days.map { days in
        (days: days, gauge: Gauge(label: "herald_devices_unseen", dimensions: [("days", "\(days)")]))
    }
    private let ending = FleetGauges.certificates("ending")
    private let ended = FleetGauges.certificates("ended")

    init(_ assembly: ServiceAssembly) { self.assembly = assembly }

    private static func certificates(_ state: String) -> Gauge {
        Gauge(label: "herald_device_certificates", dimensions: [("state", state)])
    }

    /// Counts the devices; the gauges keep their values if the ledger cannot be read.
    func measure() async {
        let lifetime = assembly.configuration.activation.certificateLifetime
        var counts = FleetCounts(now: assembly.clock.now(), lifetime: lifetime)
        var next: String?
        repeat {
            guard !Task.isCancelled else { return }
            do {
                let selection = DeviceSelection(after: next, limit: Self.part)
                let part = try await assembly.trust.folder.store.devices(selection)
                for device in part.items { counts.add(device, isConnected: assembly.isConnected(device.id)) }
                next = part.next
            } catch {
                return assembly.logger.debug("devices cannot be counted now", metadata: ["error": "\(error)"])
            }
        } while next != nil
        enrolled.record(counts.enrolled)
        for one in unseen { one.gauge.record(counts.unseen[one.days] ?? 0) }
        ending.record(counts.ending)
        ended.record(counts.ended)
    }
}
