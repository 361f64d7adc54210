import CoreMetrics
package import HeraldMailbox
import HeraldModel
package import Logging
import ServiceLifecycle
import Synchronization

/// Watches for jumps of the machine's clock: logs them, and keeps the certain time in the store.
package struct ClockWatch: Service {
    /// Interval between two looks; nothing expires by an unseen jump, since each sweep looks by itself.
    private static let interval: Duration = .seconds(1)
    /// Interval between two writes of the certain time, in looks: ten minutes.
    private static let looksPerRecord = 600

    package let clock: ServiceClock
    package let store: any ClockStore
    package let logger: Logger
    /// Delivers or deletes withheld notifications and broadcasts.
    let release: @Sendable () -> Void
    private let reported = Reported()

    package func run() async throws {
        await cancelWhenGracefulShutdown {
            for count in 0... {
                look()
                if count % ClockWatch.looksPerRecord == 0 { await record() }
                do { try await Task.sleep(for: ClockWatch.interval) } catch { return }
            }
        }
        await record()
    }

    /// Accepts the machine's clock.
    package func accept() async {
        clock.accept()
        look()
        await record()
    }

    /// The warning while expiry is not certain, for the operator.
    package var warning: String? {
        switch clock.guardState {
        case .trusted: nil
        case .jumped(let deviation):
            "the machine's clock jumped by \(ClockWatch.text(deviation)): \(ClockWatch.withholding); set the clock right, or "
                + "run `herald clock accept`"
        case .unverified(let stop):
            "the service was stopped for \(ClockWatch.text(stop).dropFirst()) by the machine's clock: "
                + "\(ClockWatch.withholding), for a day; if the clock is right, run `herald clock accept`"
        case .unset:
            "the machine's clock is not set (\(clock.now().rfc3339)): no notification expires until it is; set it, or start "
                + "a time service"
        }
    }

    private static let withholding = "Herald withholds notifications that look expired"

    private func record() async {
        guard let record = clock.guardRecord else { return }
        // The store itself reports a disk that cannot be written.
        try? await store.setClockRecord(record)
    }

    /// Looks at the clock: logs a change, and releases withheld notifications.
    package func look() {
        let state = clock.guardState
        reported.gauge.record(state.deviation.components.seconds)
        let before = reported.state.withLock { before in
            defer { before = state }
            return before
        }
        if state.kind != before.kind { log(state, after: before) }
        // A clock that was set again may still be wrong, and fewer notifications look expired.
        if before.withholds, state.kind != before.kind || state.deviation + ClockGuard.tolerance < before.deviation {
            release()
        }
    }

    private func log(_ state: ClockGuard.State, after before: ClockGuard.State) {
        let now: Logger.MetadataValue = "\(clock.now().rfc3339)"
        switch state {
        case .jumped(let deviation):
            logger.error(
                """
                the machine's clock has jumped: Herald withholds notifications that look expired; set the clock right, or \
                run herald clock accept
                """,
                metadata: ["by": "\(ClockWatch.text(deviation))", "now": now]
            )
        case .unverified(let stop):
            logger.notice(
                """
                the last run ended long ago, or the clock is wrong: Herald withholds notifications that look expired for a \
                day; if the clock is right, run herald clock accept
                """,
                metadata: ["stop": "\(ClockWatch.text(stop))", "now": now]
            )
        case .unset:
            logger.warning(
                "the machine's clock is not set: no notification expires until it is; set it, or start a time service",
                metadata: ["now": now]
            )
        case .trusted:
            switch clock.guardEnding {
            case .returned where before.kind == .unset:
                logger.notice("the machine's clock is set", metadata: ["now": now])
            case .returned: logger.notice("the machine's clock is right again: Herald withholds nothing")
            case .accepted: logger.notice("the operator accepted the clock: Herald withholds nothing")
            case .believed where before.kind == .jumped:
                logger.error("the clock has not returned for a day: Herald deletes withheld notifications now")
            case .believed, nil: logger.notice("the clock counts as right: Herald deletes withheld notifications now")
            }
        }
    }

    /// A duration with its sign, rounded to minutes, or to hours from two days on: `+2d`, `-90m`.
    package static func text(_ duration: Duration) -> String {
        let seconds = abs(Double(duration.wholeMilliseconds) / 1000)
        let unit = seconds < 172_000 ? 60.0 : 3600
        return (duration < .zero ? "-" : "+") + DurationText.write(.seconds((seconds / unit).rounded() * unit))
    }

    private final class Reported: Sendable {
        let state = Mutex(ClockGuard.State.trusted)
        let gauge = Gauge(label: MetricName.clockJump)
    }
}

extension ClockGuard.State {
    fileprivate enum Kind { case trusted, jumped, unverified, unset }

    fileprivate var kind: Kind {
        switch self {
        case .trusted: .trusted
        case .jumped: .jumped
        case .unverified: .unverified
        case .unset: .unset
        }
    }

    fileprivate var withholds: Bool { kind != .trusted }

    /// By how much the clock has jumped; zero without a jump.
    var deviation: Duration {
        switch self {
        case .trusted, .unset: .zero
        case .jumped(let deviation), .unverified(let deviation): deviation
        }
    }
}
