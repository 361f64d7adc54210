package import HeraldModel
import HeraldWeb

/// Decides which lines of the audit are written, so that a flood of attempts is a few lines with their number.
///
/// An admin's lines are all written. Of other callers, the first lines of a kind are written and the rest are counted; a kind
/// is who, how, what and with which status. All who show no valid proof together have one further limit.
package struct AuditThrottle: Sendable {
    /// Interval in which one more line of a kind is written, and in which counts without a line are.
    package static let interval = Duration.seconds(600)

    private struct Kind: Hashable, Sendable {
        /// Name of the caller, or of the one who signed in.
        let who: String?
        /// The network of a caller without a valid code or token.
        var network: GuesserNetwork?
        let proof: ConsoleCaller.Proof?
        let action: String
        let status: Int
    }

    private struct Missed: Sendable {
        let last: AuditEntry
        let count: Int
    }

    private var changes = KeyedRateLimiter<Kind>(burst: 600, interval: .seconds(10), capacity: 4096)
    private var refusals = KeyedRateLimiter<Kind>(burst: 5, interval: interval, capacity: 4096)
    private var strangers = KeyedRateLimiter<Bool>(burst: 60, interval: .seconds(60), capacity: 1)
    private var missed: [Kind: Missed] = [:]

    package init() {}

    /// The line to write for an entry, with the number of those before it that have none; nil if it is counted only.
    package mutating func line(_ entry: AuditEntry, at now: WallTime) -> AuditEntry? {
        guard entry.role != .admin else { return entry }
        // Who signs in is not a caller yet: the target names them.
        let isStranger = entry.who == nil && entry.isRefused
        let name = entry.who ?? (isStranger ? nil : entry.target)
        var kind = Kind(who: name, proof: entry.proof, action: entry.action, status: entry.status)
        // They come from as many networks as they like: what has no line is counted for all together.
        let counted = kind
        if isStranger { kind.network = GuesserNetwork(entry.from) }
        let isDue =
            entry.isRefused
            ? refusals.wait(kind, at: now) == nil && (!isStranger || strangers.wait(true, at: now) == nil)
            : changes.wait(kind, at: now) == nil
        guard isDue else {
            missed[counted] = Missed(last: entry, count: (missed[counted]?.count ?? 0) + 1)
            return nil
        }
        if entry.isRefused { refusals.take(kind, at: now) } else { changes.take(kind, at: now) }
        if isStranger { strangers.take(true, at: now) }
        var entry = entry
        entry.more = missed.removeValue(forKey: counted)?.count
        return entry
    }

    /// Whether there are counts without a line.
    package var hasMissed: Bool { !missed.isEmpty }

    /// The lines of what was only counted, oldest first: the last of each kind, with the number of the others.
    package mutating func rest() -> [AuditEntry] {
        defer { missed = [:] }
        return missed.values.sorted { $0.last.time < $1.last.time }.map { missed in
            var entry = missed.last
            entry.more = missed.count > 1 ? missed.count - 1 : nil
            return entry
        }
    }
}
