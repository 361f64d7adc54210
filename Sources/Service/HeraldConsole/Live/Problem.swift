/// Kinds of problems, with their meaning for the operator.
package enum ProblemKind: String, Codable, CaseIterable, Sendable {
    case storeGone = "store_gone"
    case storeStopped = "store_stopped"
    case memoryFull = "memory_full"
    case overload
    case cluster
    case clusterWarning = "cluster_warning"
    case trust
    case clock
    case movedClock = "moved_clock"
    case damage
    case certificate
    case revocationList = "revocation_list"
    case disk
    case drill
    case refusals
    /// A fault of which there is nothing more to say.
    case other

    /// Weight of a problem.
    package enum Severity: String, Codable, CaseIterable, Sendable {
        /// The service does not work.
        case problem
        case warning
        /// A person switched it on: a drill, for example.
        case notice
    }

    package var severity: Severity {
        switch self {
        case .storeGone, .storeStopped, .memoryFull, .cluster: .problem
        case .drill, .movedClock: .notice
        default: .warning
        }
    }

    /// One row of the table.
    private typealias Row = (why: String, action: String, link: String)

    private var row: Row {
        switch self {
        case .storeGone:
            (
                "Providers get 503, because nothing could be found again after a restart.",
                "Put the data folder back, or stop the service and restore a backup.",
                "docs/operations/backup.md#a-deleted-or-moved-data-folder"
            )
        case .storeStopped:
            (
                "Providers get 503, and send again later.",
                "Look for the cause in the log: most often the disk is full.",
                "docs/operations/alerts.md#heraldnotready"
            )
        case .memoryFull:
            (
                "Providers get 503, and send again later.",
                "Look for devices that do not acknowledge, or set a larger notification-memory.",
                "docs/operations/alerts.md#heraldmemoryhigh"
            )
        case .overload:
            (
                "Providers get 503 for what is too much, and are asked to wait.",
                "Find the provider that sends so fast, or use a faster disk.",
                "docs/operations/troubleshooting.md#the-service-runs-with-faults"
            )
        case .cluster:
            (
                "This node cannot store notifications in the cluster; its providers get 503.",
                "Look at the NATS servers: herald cluster status.",
                "docs/cluster.md"
            )
        case .clusterWarning:
            (
                "The cluster works, but may not survive another failure.",
                "Look at the nodes and servers: herald cluster status.",
                "docs/cluster.md"
            )
        case .trust:
            (
                "The state before stays in force: a new credential or revocation has no effect yet.",
                "Correct the file that the text names; the service reads it again every second.",
                "docs/operations/alerts.md#heraldtrustnotreloaded"
            )
        case .clock:
            (
                "Herald withholds notifications that look expired, because the clock may be wrong.",
                "Set the clock right; if it is right, run herald clock accept.",
                "docs/operations/time.md#jumps-of-the-machines-clock"
            )
        case .movedClock:
            (
                "Notifications, tokens and certificates expire by the moved time.",
                "Move it back with herald clock advance, or start again without --clock adjustable.",
                "docs/operations/time.md"
            )
        case .damage:
            (
                "Notifications or journal lines in these rows are lost.",
                "Check the disk, and restore a backup if there are more.",
                "docs/operations/backup.md#a-damaged-database"
            )
        case .certificate:
            (
                "Once it has expired, devices and providers refuse the service, or it refuses them.",
                "Renew it in time.",
                "docs/operations/alerts.md#heraldcertificateexpires"
            )
        case .revocationList:
            (
                "New connections of these peers are refused until there is a newer list.",
                "Write a new list into the trust folder.",
                "docs/operations/alerts.md#heraldrevocationlistnotcurrent"
            )
        case .disk:
            (
                "When the disk is full, nothing can be stored, and providers get 503.",
                "Make room on the disk, or keep less of the journal (journal-size, journal-days).",
                "docs/operations/alerts.md#heralddisklow"
            )
        case .drill:
            (
                "Providers get failures on purpose.",
                "Stop it with herald drill stop, unless a test needs it.",
                "docs/drills.md"
            )
        case .refusals:
            (
                "These notifications reach nobody, and the same request is refused again.",
                "Look at the samples on the page of refusals, and tell the owner of the provider.",
                "docs/providers.md#refusals"
            )
        case .other:
            (
                "The service goes on, but something needs attention.",
                "Look into the log for the cause.",
                "docs/operations/troubleshooting.md#the-service-runs-with-faults"
            )
        }
    }

    /// The reason why it matters.
    package var why: String { row.why }
    /// One thing to do.
    package var action: String { row.action }
    /// A place in the manual.
    package var link: String { row.link }
}

/// A problem that exists at the moment.
package struct ProblemFinding: Hashable, Sendable {
    package let kind: ProblemKind
    /// The object, which tells problems of one kind apart.
    package let subject: String
    package let what: String

    package init(_ kind: ProblemKind, of subject: String = "", _ what: String) {
        self.kind = kind
        self.subject = subject
        self.what = what
    }
}

/// A problem, present or past.
package struct Problem: Codable, Hashable, Sendable {
    package let kind: ProblemKind
    package let severity: ProblemKind.Severity
    package let since: String
    /// Absent while it lasts.
    package fileprivate(set) var until: String?
    package fileprivate(set) var what: String
    package let why: String
    package let action: String
    package let link: String

    fileprivate init(_ finding: ProblemFinding, since: String) {
        kind = finding.kind
        severity = finding.kind.severity
        self.since = since
        what = finding.what
        why = finding.kind.why
        action = finding.kind.action
        link = finding.kind.link
    }
}

/// The present problems, and those that are over.
package struct ProblemBook: Sendable {
    /// The most problems that are over and kept.
    static let historyLimit = 200
    /// The most present problems.
    static let presentLimit = 100

    private struct Key: Hashable {
        let kind: ProblemKind
        let subject: String
    }

    private var open: [Key: Problem] = [:]
    private var order: [Key] = []
    /// Newest first.
    private var ended: [Problem] = []

    package init() {}

    /// The present problems, oldest first.
    package var present: [Problem] { order.compactMap { open[$0] } }

    /// The present problems, newest first, then those that are over, the last to end first.
    package var history: [Problem] { present.reversed() + ended }

    /// Takes over what was found.
    /// - Returns: Whether anything changed.
    package mutating func update(_ findings: [ProblemFinding], at moment: String) -> Bool {
        let before = open
        var found: Set<Key> = []
        for finding in findings.prefix(ProblemBook.presentLimit) {
            let key = Key(kind: finding.kind, subject: finding.subject)
            guard found.insert(key).inserted else { continue }
            if open[key] == nil {
                open[key] = Problem(finding, since: moment)
                order.append(key)
            } else {
                open[key]?.what = finding.what
            }
        }
        for key in order where !found.contains(key) {
            guard var problem = open.removeValue(forKey: key) else { continue }
            problem.until = moment
            ended.insert(problem, at: 0)
        }
        order.removeAll { !found.contains($0) }
        ended.removeLast(max(0, ended.count - ProblemBook.historyLimit))
        return open != before
    }
}
