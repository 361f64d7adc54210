import CoreMetrics
import HeraldMailbox
import HeraldModel
import Logging
import ServiceLifecycle
import Synchronization

/// Watches for jumps of the machine's clock: logs them, and keeps the certain time in the store.
struct ClockWatch: Service {
    /// Interval between two looks; nothing expires by an unseen jump, since each sweep looks by itself.
    private static let interval: Duration = .seconds(1)
    /// Interval between two writes of the certain time, in looks: ten minutes.
    private static let looksPerRecord = 600

    let clock: ServiceClock
    let store: any ClockStore
    let postOffice: PostOffice
    let logger: Logger
    private let reported = Reported()

    init(clock: ServiceClock, store: any ClockStore, postOffice: PostOffice, logger: Logger) {
        self.clock = clock
        self.store = store
        self.postOffice = postOffice
        self.logger = logger
    }

    func run() async throws {
        await cancelWhenGracefulShutdown {
            for look in 0... {
                report()
                if look % ClockWatch.looksPerRecord == 0 { await record() }
                do { try await Task.sleep(for: ClockWatch.interval) } catch { return }
            }
        }
        await record()
    }

    /// Accepts the machine's clock.
    func accept() async {
        clock.accept()
        report()
        await record()
    }

    /// The warning while Herald withholds notifications, for the operator.
    var warning: String? {
        switch clock.guardState {
        case .trusted: nil
        case .jumped(let deviation):
            "the machine's clock jumped by \(ClockWatch.text(deviation)): what looks expired since is withheld; set the "
                + "clock right, or run `herald clock accept`"
        case .unverified(let stop):
            "the service was stopped for \(ClockWatch.text(stop).dropFirst()) by the machine's clock: what expired in that "
                + "time is withheld for a day; if the clock is right, run `herald clock accept`"
        }
    }

    private func record() async {
        // The store itself reports a disk that cannot be written.
        try? await store.setClockRecord(clock.guardRecord)
    }

    /// Logs a change, and delivers or deletes what was withheld.
    private func report() {
        let state = clock.guardState
        reported.gauge.record(state.deviation.components.seconds)
        let before = reported.state.withLock { before in
            defer { before = state }
            return before
        }
        guard state.kind != before.kind else { return }
        switch state {
        case .jumped(let deviation):
            logger.error(
                "the machine's clock has jumped: what looks expired is withheld; set it right, or run herald clock accept",
                metadata: ["by": "\(ClockWatch.text(deviation))", "now": "\(clock.now().rfc3339)"]
            )
        case .unverified(let stop):
            logger.notice(
                "the last run ended long ago, or the clock is wrong: what expired since is withheld for a day",
                metadata: ["stop": "\(ClockWatch.text(stop))", "now": "\(clock.now().rfc3339)"]
            )
        case .trusted:
            switch clock.guardEnding {
            case .returned: logger.notice("the machine's clock is right again; nothing is withheld")
            case .accepted: logger.notice("the operator accepted the clock; nothing is withheld")
            case .believed where before.kind == .jumped:
                logger.error("the machine's clock has not returned for a day: what was withheld expires now")
            case .believed, nil: logger.notice("what was withheld since the start expires now")
            }
            postOffice.releaseWithheld()
        }
    }

    /// A duration with its sign, rounded to minutes, or to hours from two days on: `+2d`, `-90m`.
    static func text(_ duration: Duration) -> String {
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
    fileprivate enum Kind { case trusted, jumped, unverified }

    fileprivate var kind: Kind {
        switch self {
        case .trusted: .trusted
        case .jumped: .jumped
        case .unverified: .unverified
        }
    }

    /// By how much the clock has jumped; zero without a jump.
    var deviation: Duration {
        switch self {
        case .trusted: .zero
        case .jumped(let deviation), .unverified(let deviation): deviation
        }
    }
}
