package import HeraldConsole
import HeraldGateway
import HeraldMailbox
import HeraldModel
import HeraldStores
import HeraldTrust

/// The problems of a service at the moment, for the console.
struct ServiceFindings: Sendable {
    /// Free space below which the disk is a problem, in bytes.
    static let lowSpace = 256 << 20
    /// Time before its end at which a certificate is a problem.
    static let certificateNotice = Duration.seconds(21 * 86_400)

    let assembly: ServiceAssembly
    let administration: ServiceAdministration

    var all: [ProblemFinding] {
        let now = assembly.clock.now()
        return problems + warnings + clock + disk + certificates(now) + revocationLists(now) + drills
    }

    private var problems: [ProblemFinding] {
        if let texts = assembly.storage.cluster?.problems, !texts.isEmpty {
            return texts.map { ProblemFinding(.cluster, of: $0, $0) }
        }
        return administration.ownProblem.map { [$0] } ?? []
    }

    private var warnings: [ProblemFinding] {
        let known =
            [
                administration.watch.warning.map { ProblemFinding(.trust, $0) },
                administration.clockWatch.warning.map { ProblemFinding(.clock, $0) },
                administration.overload.map { ProblemFinding(.overload, $0) },
            ].compactMap(\.self) + administration.transition.map { ProblemFinding(.certificate, of: $0, $0) }
        let cluster = (assembly.storage.cluster.map { $0.warningsOfNode + $0.warningsOfAll } ?? [])
            .map { ProblemFinding(.clusterWarning, of: $0, $0) }
        let said = Set((known + cluster).map(\.what))
        return known + cluster
            + administration.warnings.filter { !said.contains($0) }.map { text in
                // Damaged rows have their number in the text.
                assembly.storage.store.damagedRows > 0
                    ? ProblemFinding(.damage, text) : ProblemFinding(.other, of: text, text)
            }
    }

    private var clock: [ProblemFinding] {
        let moved = assembly.clock.shift
        guard moved != .zero else { return [] }
        return [ProblemFinding(.movedClock, "the service's clock is moved by \(ClockWatch.text(moved))")]
    }

    private var disk: [ProblemFinding] {
        guard let free = assembly.storage.store.freeSpace, free < Self.lowSpace else { return [] }
        return [ProblemFinding(.disk, "less than \(Self.lowSpace >> 20) MiB are free on the disk of the data folder")]
    }

    private func certificates(_ now: WallTime) -> [ProblemFinding] {
        let trust = assembly.trust.folder
        let certificates: [(String, WallTime?)] = [
            ("server certificate", try? trust.serverCertificate().expires),
            ("root authority", trust.root.expires),
            ("authority of providers", trust.providerAuthority.expires),
            ("authority of devices", trust.deviceAuthority.expires),
        ]
        return certificates.compactMap { name, expires -> ProblemFinding? in
            guard let expires, expires - now < Self.certificateNotice else { return nil }
            let verb = expires < now ? "expired" : "expires"
            return ProblemFinding(.certificate, of: name, "the \(name) \(verb) at \(expires.rfc3339)")
        }
    }

    private func revocationLists(_ now: WallTime) -> [ProblemFinding] {
        PeerKind.allCases.compactMap { kind -> ProblemFinding? in
            switch assembly.trust.revocationListValidity(of: kind, now: now) {
            case .current: nil
            case .overdue(let since):
                ProblemFinding(
                    .revocationList,
                    of: kind.rawValue,
                    "the list of \(kind.rawValue) is overdue since \(since.rfc3339)"
                )
            case .missing:
                assembly.trust.mayLackRevocationList
                    ? nil : ProblemFinding(.revocationList, of: kind.rawValue, "there is no list of \(kind.rawValue)")
            }
        }
    }

    private var drills: [ProblemFinding] {
        administration.drills.map { drill in
            ProblemFinding(.drill, of: "\(drill.id)", "drill \(drill.id): \(drill.what), until \(drill.ends)")
        }
    }
}

extension LiveConsole {
    /// The memory of a service's console, which hears of the requests in the journal.
    package convenience init(
        _ assembly: ServiceAssembly,
        _ administration: ServiceAdministration,
        _ search: ServiceSearch,
        metrics: PrometheusRegistry
    ) {
        let (store, registry) = (assembly.storage.store, assembly.delivery.registry)
        let refusals = RefusalBook(
            provider: { store.senders.name(of: $0) },
            app: { registry.app($0) }
        )
        store.tallies.listen { tally, time in
            let requests = tally.requests
            if !requests.isEmpty { refusals.add(requests, refused: tally.refused, at: time) }
        }
        let lines = ServiceLines(feed: store.feed, searcher: search.searcher, clock: assembly.clock)
        let findings = ServiceFindings(assembly: assembly, administration: administration)
        self.init(
            series: SeriesRecorder(metrics: metrics),
            refusals: refusals,
            lines: lines,
            newestCaught: { [catcher = assembly.trials.catcher] in catcher.messages(after: .max).last },
            clock: assembly.clock,
            signs: { administration.status.signs },
            findings: { findings.all }
        )
    }
}
