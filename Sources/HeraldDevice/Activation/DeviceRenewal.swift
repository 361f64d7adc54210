import Foundation
public import HeraldModel

/// What became of a device's certificate.
public enum RenewalEvent: Sendable {
    /// There is a new one, in the folder already; the next connection is to be made with it.
    case renewed(DeviceCredential, expires: WallTime)
    /// It could not be renewed, and will be tried again.
    case failed(reason: String, nextAttempt: Duration)
    /// It has ended: the device must be activated anew.
    case expired(at: WallTime)
}

/// Keeps the certificate of a device's folder from ending, for as long as ``run(_:)`` runs.
public struct DeviceRenewal: Sendable {
    /// The clock is looked at so often at least: a machine that sleeps does not count the time.
    static let longestSleep = Duration.seconds(600)

    private let folder: DeviceFolder
    private let clock: any WallClock
    private let sleep: @Sendable (Duration) async throws -> Void
    private let random: @Sendable () -> Double
    private let renew: @Sendable () async throws -> DeviceCredential

    /// Keeps the certificate of a folder.
    public init(folder: DeviceFolder) {
        self.init(
            folder: folder,
            clock: MachineClock(),
            sleep: { try await Task.sleep(for: $0) },
            random: { .random(in: 0...1) },
            renew: { try await folder.renew() }
        )
    }

    init(
        folder: DeviceFolder,
        clock: any WallClock,
        sleep: @escaping @Sendable (Duration) async throws -> Void,
        random: @escaping @Sendable () -> Double,
        renew: @escaping @Sendable () async throws -> DeviceCredential
    ) {
        self.folder = folder
        self.clock = clock
        self.sleep = sleep
        self.random = random
        self.renew = renew
    }

    /// Renews when it is time, until the task is cancelled or the certificate has ended.
    /// - Parameter handle: Called with one event at a time. What it throws ends the run.
    /// - Throws: `CancellationError`, what `handle` throws, or ``EnrollmentError`` for a folder that cannot be read.
    public func run(_ handle: (RenewalEvent) async throws -> Void) async throws {
        guard var plan = try plan() else { return }
        while true {
            try Task.checkCancellation()
            switch plan.step(at: clock.now()) {
            case .wait(let time):
                try await sleep(min(time, Self.longestSleep))
            case .renew:
                try await handle(try await attempt(&plan))
            case .over:
                return try await handle(.expired(at: plan.expires))
            }
        }
    }

    private func attempt(_ plan: inout RenewalPlan) async throws -> RenewalEvent {
        do {
            let credential = try await renew()
            if let next = try self.plan() { plan = next }
            return .renewed(credential, expires: plan.expires)
        } catch let error as EnrollmentError {
            let pause = plan.failed(at: clock.now(), random: random(), wish: error.retryAfter)
            return .failed(reason: error.message, nextAttempt: pause)
        }
    }

    private func plan() throws -> RenewalPlan? {
        try folder.term().map { RenewalPlan(begins: $0.begins, expires: $0.expires, random: random()) }
    }
}

/// The clock of this machine.
private struct MachineClock: WallClock {
    func now() -> WallTime {
        WallTime(milliseconds: Int64(Date().timeIntervalSince1970 * 1000))
    }
}
