package import HeraldModel

/// Reads or makes the record of the cluster.
package enum ClusterIdentity {
    static let subject = LogSubject.meta("cluster")

    /// The cluster's record; nil for a new cluster.
    /// - Throws: ``OtherTrust/otherKey`` if it does not open, or an error of the log.
    package static func read(_ changes: RecordChanges) async throws -> ClusterRecord? {
        do {
            return try await changes.read(subject, in: .meta, as: ClusterRecord.self).record
        } catch RecordError.setAside {
            throw OtherTrust.otherKey
        }
    }

    /// Writes the record again that somebody has overwritten, as this node has seen it.
    /// - Returns: The record as the log has it then.
    /// - Throws: ``RecordChangeFailure``, or another error of the log.
    static func restore(_ known: ClusterRecord, _ changes: RecordChanges) async throws -> ClusterRecord {
        try await changes.change(
            subject,
            in: .meta,
            from: Versioned<ClusterRecord>(),
            whenSetAside: Replacement { known }
        ) {
            record in
            let cluster = record ?? known
            record = cluster
            return cluster
        }
    }

    /// The cluster's record; a new cluster gets one, with `partitions`.
    ///
    /// - Throws: ``RecordChangeFailure``, ``RecordError``, ``ImportProblem/underWay(since:)``, or ``OtherPartitions`` for a
    ///   cluster that was made with another number.
    package static func open(
        _ partitions: Partitions,
        at moment: WallTime,
        _ changes: RecordChanges
    ) async throws -> ClusterRecord {
        let new = ClusterRecord(incarnation: .random(in: 1..<1 << 24), partitions: partitions, created: moment)
        let record = try await changes.change(
            subject,
            in: .meta,
            from: Versioned<ClusterRecord>(),
            whenSetAside: Replacement { throw OtherTrust.otherKey }
        ) { record in
            let cluster = record ?? new
            record = cluster
            return cluster
        }
        try record.check(partitions)
        return record
    }

    /// The error for a number of partitions that the cluster does not have.
    package struct OtherPartitions: Error, Hashable, CustomStringConvertible {
        let partitions: Int
        let asked: Int

        package var description: String {
            "the cluster has \(partitions) partitions, and the settings say \(asked): the number cannot be changed, so set it "
                + "to \(partitions)"
        }
    }
}

extension ClusterRecord {
    /// - Throws: ``ImportProblem/underWay(since:)``, or ``ClusterIdentity/OtherPartitions`` if the cluster has another number
    ///   of partitions.
    func check(_ asked: Partitions) throws {
        guard importSource == nil else { throw ImportProblem.underWay(since: created) }
        guard partitions == asked else {
            throw ClusterIdentity.OtherPartitions(partitions: partitions.count, asked: asked.count)
        }
    }
}

extension RecordChanges {
    /// ``read(_:in:as:_:)`` as an async call.
    package func read<Record: LogRecord & Equatable>(
        _ subject: LogSubject,
        in stream: LogStream,
        as _: Record.Type
    ) async throws -> Versioned<Record> {
        try await withCheckedThrowingContinuation { continuation in
            read(subject, in: stream, as: Record.self) { continuation.resume(with: $0) }
        }
    }

    /// ``change(_:in:from:_:_:)`` as an async call.
    package func change<Record: LogRecord & Equatable, Value: Sendable>(
        _ subject: LogSubject,
        in stream: LogStream,
        from known: Versioned<Record>,
        whenSetAside replacement: Replacement<Record>? = nil,
        _ edit: @escaping @Sendable (inout Record?) throws -> Value
    ) async throws -> Value {
        try await withCheckedThrowingContinuation { continuation in
            change(subject, in: stream, from: known, whenSetAside: replacement, edit) {
                continuation.resume(with: $0.map(\.1))
            }
        }
    }
}
