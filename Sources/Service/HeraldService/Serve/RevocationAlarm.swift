import CoreMetrics
import HeraldMailbox
import HeraldModel
import HeraldTrust
import Logging
import Synchronization

/// Logs and measures revocation lists that are overdue or missing: from then on new connections are refused.
final class RevocationAlarm: Sendable {
    private struct Gauges: Sendable {
        let isCurrent: Gauge
        let expiry: Gauge

        init(_ kind: PeerKind) {
            let dimensions = [("peers", kind.rawValue)]
            isCurrent = Gauge(label: MetricName.revocationListCurrent, dimensions: dimensions)
            expiry = Gauge(label: MetricName.revocationListExpiry, dimensions: dimensions)
        }
    }

    private let trust: TrustService
    private let clock: any WallClock
    private let logger: Logger
    private let gauges: [(PeerKind, Gauges)]
    /// The kinds whose list was overdue or missing at the last check.
    private let alarmed = Mutex<Set<PeerKind>>([])

    init(trust: TrustService, clock: any WallClock, logger: Logger) {
        self.trust = trust
        self.clock = clock
        self.logger = logger
        gauges = PeerKind.allCases.map { ($0, Gauges($0)) }
    }

    /// Checks both lists; cheap enough for every second.
    func check() {
        let now = clock.now()
        for (kind, gauges) in gauges {
            let standing = trust.revocationListValidity(of: kind, now: now)
            measure(standing, gauges)
            report(standing, kind)
        }
    }

    private func measure(_ standing: RevocationLists.Validity, _ gauges: Gauges) {
        switch standing {
        case .current(let until):
            gauges.isCurrent.record(1)
            if let until { gauges.expiry.record(until.milliseconds / 1000) }
        case .overdue(let since):
            gauges.isCurrent.record(0)
            gauges.expiry.record(since.milliseconds / 1000)
        case .missing:
            gauges.isCurrent.record(0)
        }
    }

    private func report(_ standing: RevocationLists.Validity, _ kind: PeerKind) {
        if case .current = standing {
            guard alarmed.withLock({ $0.remove(kind) }) != nil else { return }
            logger.notice("the revocation list is current again", metadata: ["peers": "\(kind.rawValue)"])
            return
        }
        guard alarmed.withLock({ $0.insert(kind).inserted }) else { return }
        let path = trust.folder.layout.revocationList(kind)
        switch standing {
        case .current:
            break
        case .overdue(let since):
            logger.error(
                "the revocation list is overdue: new connections of these peers are refused until there is a newer one",
                metadata: ["peers": "\(kind.rawValue)", "list": "\(path)", "due": "\(since.rfc3339)"]
            )
        case .missing where trust.mayLackRevocationList:
            logger.warning(
                "there is no revocation list: no peer of this kind counts as revoked",
                metadata: ["peers": "\(kind.rawValue)", "list": "\(path)"]
            )
        case .missing:
            logger.error(
                "there is no revocation list: connections of these peers are refused",
                metadata: ["peers": "\(kind.rawValue)", "list": "\(path)"]
            )
        }
    }
}
