import NIOCore

/// Decides when a node leaves a NATS server that is connected, and behind which no majority takes writes.
///
/// Such a server may be cut off from the others, which elect new leaders. A write that is not answered says that no leader can
/// be reached through it. Every stream has a write every ``ClusterLimits/followerTick``.
struct WriteSilence {
    /// The streams that took no write, and when that was first noticed.
    private var silent: [LogStream: NIODeadline] = [:]
    /// The last write that each stream took while one was silent.
    private var stored: [LogStream: NIODeadline] = [:]
    /// The servers that were left since all streams took writes, and the streams for which they were left.
    private var departures = 0
    private var blamed: Set<LogStream> = []

    /// Whether all streams take writes, as far as is known.
    var isOver: Bool { silent.isEmpty && departures == 0 }

    /// A stream has taken a write.
    /// - Returns: Whether a server was left, and all takes writes at the present one.
    mutating func stored(in stream: LogStream, at now: NIODeadline) -> Bool {
        silent[stream] = nil
        blamed.remove(stream)
        stored[stream] = now
        guard blamed.isEmpty, departures > 0 else { return false }
        departures = 0
        return true
    }

    /// A stream has not taken a write, at a server that is connected.
    ///
    /// A write that was sent before the last one that the stream took is ignored: the stream had no leader then, and has one now.
    /// - Returns: Whether to leave the server.
    mutating func unanswered(in stream: LogStream, sent: NIODeadline, at now: NIODeadline) -> Bool {
        guard stored[stream].map({ $0 < sent }) ?? true else { return false }
        silent[stream] = silent[stream] ?? now
        guard let first = silent.values.min() else { return false }
        let isWhole = stored.values.allSatisfy { $0 < first }
        let patience = ClusterLimits.writeSilence(isWhole: isWhole, after: departures)
        guard now - first >= TimeAmount(patience) else { return false }
        blamed.formUnion(silent.keys)
        silent = [:]
        departures += 1
        return true
    }
}
