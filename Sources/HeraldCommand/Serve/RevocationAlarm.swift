import CoreMetrics
import HeraldMailbox
import HeraldModel
import HeraldTrust
import Logging
import Synchronization

/// Says loudly when a revocation list may not be relied on any more, since from then on nobody new is let in.
final class RevocationAlarm: Sendable {
    private struct Gauges: Sendable {
        let isCurrent: Gauge
        let secondsLeft: Gauge

        init(_ kind: PeerKind) {
            let dimensions = [("peers", kind.rawValue)]
            isCurrent = Gauge(label: MetricName.revocationListCurrent, dimensions: dimensions)
            secondsLeft = Gauge(label: MetricName.revocationListSecondsLeft, dimensions: dimensions)
        }
    }

    private let trust: TrustOffice
    private let clock: any WallClock
    private let logger: Logger
    private let gauges: [(PeerKind, Gauges)]
    /// The kinds whose list was found wanting last time.
    private let wanting = Mutex<Set<PeerKind>>([])

    init(trust: TrustOffice, clock: any WallClock, logger: Logger) {
        self.trust = trust
        self.clock = clock
        self.logger = logger
        gauges = PeerKind.allCases.map { ($0, Gauges($0)) }
    }

    /// Looks at both lists; cheap, and meant for every second.
    func look() {
        let now = clock.now()
        for (kind, gauges) in gauges {
            let standing = trust.revocationStanding(of: kind, now: now)
            measure(standing, gauges, now: now)
            report(standing, kind)
        }
    }

    private func measure(_ standing: RevocationBook.Standing, _ gauges: Gauges, now: WallTime) {
        switch standing {
        case .current(let until):
            gauges.isCurrent.record(1)
            if let until { gauges.secondsLeft.record((until - now).components.seconds) }
        case .overdue(let since):
            gauges.isCurrent.record(0)
            gauges.secondsLeft.record((since - now).components.seconds)
        case .missing:
            gauges.isCurrent.record(0)
        }
    }

    private func report(_ standing: RevocationBook.Standing, _ kind: PeerKind) {
        if case .current = standing {
            guard wanting.withLock({ $0.remove(kind) }) != nil else { return }
            logger.notice("the revocation list is current again", metadata: ["peers": "\(kind.rawValue)"])
            return
        }
        guard wanting.withLock({ $0.insert(kind).inserted }) else { return }
        let path = trust.folder.layout.revocationList(kind)
        switch standing {
        case .current:
            break
        case .overdue(let since):
            logger.error(
                "the revocation list is overdue: nobody new of these peers is let in until a newer one is there",
                metadata: ["peers": "\(kind.rawValue)", "list": "\(path)", "due": "\(since.rfc3339)"]
            )
        case .missing where trust.mayLackRevocationList:
            logger.warning(
                "there is no revocation list: nobody of these peers counts as revoked",
                metadata: ["peers": "\(kind.rawValue)", "list": "\(path)"]
            )
        case .missing:
            logger.error(
                "there is no revocation list: nobody of these peers is let in",
                metadata: ["peers": "\(kind.rawValue)", "list": "\(path)"]
            )
        }
    }
}
