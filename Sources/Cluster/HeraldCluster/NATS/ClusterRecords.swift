package import HeraldModel
package import HeraldNATS

/// The record of a node as the servers keep it.
package struct SeenNode: Hashable, Sendable {
    package let record: NodeRecord
    /// The sequence of the record.
    package let sequence: UInt64
    /// The time of its last renewal, by the clock of a server.
    package let renewed: WallTime
}

/// The records of a cluster and its nodes, for a command beside the nodes.
package struct ClusterRecords: Sendable {
    /// The nodes that ever served and were not removed, by name.
    package let nodes: [SeenNode]
    /// Nil before the first node has started.
    package let partitions: Partitions?
    /// 0 before the first node has started.
    package let incarnation: UInt32
    /// The time of the server that leads the records' stream; nil if it does not say it.
    package let now: WallTime?

    /// Reads the records.
    /// - Throws: `JetStreamError`, ``LogFailure``, or ``OtherTrust/otherKey``.
    package init(_ jetStream: JetStream, seal: RecordSeal) async throws {
        let open = { (message: StoredMessage) in
            seal.open(
                message.payload,
                at: message.subject,
                if: message.headers.expectedLastSubjectSequence
            )
        }
        let info = try await jetStream.streamInfo(LogStream.meta.name)
        let messages = try await Self.newest(jetStream, atLeast: info.state.lastSequence)
        nodes = messages.compactMap { message in
            // A removed record is empty.
            guard message.subject != ClusterIdentity.subject.text,
                let record = open(message).flatMap({ try? NodeRecord($0) }),
                let time = message.headers.lastValue("Nats-Time-Stamp").flatMap({ WallTime(rfc3339: $0) })
            else { return nil }
            return SeenNode(record: record, sequence: message.sequence, renewed: time)
        }
        .sorted { $0.record.node.text < $1.record.node.text }
        let cluster = try messages.first { $0.subject == ClusterIdentity.subject.text }.map { message in
            guard let payload = open(message) else { throw OtherTrust.otherKey }
            return try ClusterRecord(payload)
        }
        partitions = cluster?.partitions
        incarnation = cluster?.incarnation ?? 0
        now = info.answered.flatMap { WallTime(rfc3339: $0) }
    }

    /// Reads from a replica that is not behind; it tries again until ``ClusterLimits/readDeadline``.
    private static func newest(_ jetStream: JetStream, atLeast bound: UInt64) async throws -> [StoredMessage] {
        let end = ContinuousClock.now + ClusterLimits.readDeadline
        while true {
            let failure: any Error
            switch await read(jetStream, atLeast: bound) {
            case .complete(let messages, _): return messages
            // There is no node yet.
            case .nothing: return []
            case .behind: failure = LogFailure.behind
            case .failed(let error): failure = error
            }
            guard .now < end else { throw failure }
            try await Task.sleep(for: ClusterLimits.longestReadPause)
        }
    }

    private static func read(_ jetStream: JetStream, atLeast bound: UInt64) async -> BoundedRead {
        await withCheckedContinuation { continuation in
            jetStream.readLast(
                [LogSubject.nodes.text, ClusterIdentity.subject.text],
                in: LogStream.meta.name,
                atLeast: bound,
                within: ClusterLimits.readAttempt
            ) { continuation.resume(returning: $0) }
        }
    }
}
