package import HeraldModel

/// The mark of an import, in the cluster's record: one compare-and-set decides between an import and a first node.
extension ClusterIdentity {
    /// Marks a new cluster as being imported; an import of the same folder that was interrupted is replaced.
    ///
    /// `source` are sixteen bytes that identify the folder. `taken` are the numbers of its devices, which the cluster
    /// never gives to another one.
    /// - Returns: The record, with the mark.
    /// - Throws: ``ImportProblem``, or an error of the log.
    package static func beginImport(
        of source: [UInt8],
        _ partitions: Partitions,
        without taken: some Sequence<DeviceNumber>,
        at moment: WallTime,
        _ changes: RecordChanges
    ) async throws -> ClusterRecord {
        let former = Set(taken.map { $0.value >> 32 })
        var incarnation: UInt32
        repeat { incarnation = .random(in: 1..<1 << 24) } while former.contains(UInt64(incarnation))
        let new = ClusterRecord(
            incarnation: incarnation,
            partitions: partitions,
            created: moment,
            importSource: source
        )
        try await changes.change(
            subject,
            in: .meta,
            from: Versioned<ClusterRecord>(),
            whenSetAside: Replacement { throw ImportProblem.notEmpty }
        ) { record in
            try record?.checkImport(of: source)
            record = new
        }
        return new
    }

    /// Removes the mark: from here on nodes start.
    /// - Returns: The record of the cluster.
    /// - Throws: ``ImportProblem/takenOver``, or an error of the log.
    package static func endImport(_ mark: ClusterRecord, _ changes: RecordChanges) async throws -> ClusterRecord {
        let present = try await changes.read(subject, in: .meta, as: ClusterRecord.self)
        return try await changes.change(subject, in: .meta, from: present) { record in
            guard var cluster = record, cluster.incarnation == mark.incarnation else { throw ImportProblem.takenOver }
            cluster.importSource = nil
            record = cluster
            return cluster
        }
    }
}

extension ClusterRecord {
    /// - Throws: ``ImportProblem`` unless the record has the mark of an import of the same folder.
    func checkImport(of source: [UInt8]) throws(ImportProblem) {
        guard let other = importSource else { throw .notEmpty }
        guard other == source else { throw .otherImport(since: created) }
    }
}
