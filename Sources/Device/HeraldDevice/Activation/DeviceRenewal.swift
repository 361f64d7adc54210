import Foundation
public import HeraldModel

/// An event of a device's certificate.
public enum RenewalEvent: Sendable {
    /// It was renewed, and saved in the folder. Use it for the next connection.
    case renewed(DeviceCredential, expires: WallTime)
    /// The renewal failed. Another attempt follows.
    case failed(reason: String, nextAttempt: Duration)
    /// It has expired, by this machine's clock, which may be wrong. The device must be activated again.
    case expired(at: WallTime)
}

/// Renews the certificate in a device's folder in time, while ``run(_:)`` runs.
public struct DeviceRenewal: Sendable {
    /// The longest pause between two looks at the clock, because timers stop while the machine sleeps.
    static let longestSleep = Duration.seconds(600)

    let folder: DeviceFolder
    let clock: any WallClock
    let sleep: @Sendable (Duration) async throws -> Void
    let random: @Sendable () -> Double
    let renew: @Sendable () async throws -> DeviceCredential

    /// Renews when it is due, until the task is cancelled.
    ///
    /// After ``RenewalEvent/expired(at:)`` it goes on: a clock that was wrong may be set right.
    /// - Parameter handle: Called with one event at a time. An error that it throws ends the run.
    /// - Throws: `CancellationError`, the error of `handle`, or ``EnrollmentError`` for a folder that cannot be read.
    public func run(_ handle: (RenewalEvent) async throws -> Void) async throws {
        guard var plan = try plan() else { return }
        var last: RenewalPlan.Step?
        while true {
            try Task.checkCancellation()
            let step = plan.step(at: clock.now())
            switch step {
            case .wait(let time):
                try await sleep(min(time, Self.longestSleep))
            case .renew:
                try await handle(try await attempt(&plan))
            case .expired:
                if last != .expired { try await handle(.expired(at: plan.expires)) }
                try await sleep(Self.longestSleep)
            }
            last = step
        }
    }

    private func attempt(_ plan: inout RenewalPlan) async throws -> RenewalEvent {
        do {
            let credential = try await renew()
            if let next = try self.plan() { plan = next }
            return .renewed(credential, expires: plan.expires)
        } catch let error where !(error is CancellationError) {
            let refusal = error as? EnrollmentError
            let pause = plan.failed(at: clock.now(), random: random(), retryAfter: refusal?.retryAfter)
            return .failed(reason: refusal?.message ?? "\(error)", nextAttempt: pause)
        }
    }

    private func plan() throws -> RenewalPlan? {
        try folder.validity().map { RenewalPlan(begins: $0.begins, expires: $0.expires, random: random()) }
    }
}

extension DeviceRenewal {
    /// Renews the certificate of a folder.
    public init(folder: DeviceFolder) {
        self.init(
            folder: folder,
            clock: MachineClock(),
            sleep: { try await Task.sleep(for: $0) },
            random: { .random(in: 0...1) },
            renew: { try await folder.renew() }
        )
    }
}

/// The clock of this machine.
package struct MachineClock: WallClock {
    package init() {}

    package func now() -> WallTime {
        WallTime(milliseconds: Int64(Date().timeIntervalSince1970 * 1000))
    }
}
