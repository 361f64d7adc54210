package import HeraldModel
import HeraldNATS

extension ClusterStreams {
    /// Makes empty streams for an import, and marks the cluster as being imported.
    ///
    /// What an interrupted import of the same folder has left is removed: only it has written to these streams.
    /// `source` and `taken` are those of ``ClusterIdentity/beginImport(of:_:without:at:_:)``. `keepKey` keeps the
    /// cluster key, before the first record is sealed under it.
    /// - Returns: The record of the cluster, with the mark.
    /// - Throws: ``ImportProblem``, ``StreamProblem``, or an error of the log.
    package func openForImport(
        of source: [UInt8],
        _ partitions: Partitions,
        without taken: some Sequence<DeviceNumber>,
        at moment: WallTime,
        _ changes: RecordChanges,
        keepKey: () throws -> Void
    ) async throws -> ClusterRecord {
        try await open(.meta, isNew: true, at: moment)
        let former: ClusterRecord?
        do {
            former = try await ClusterIdentity.read(changes)
        } catch OtherTrust.otherKey {
            throw ImportProblem.notEmpty
        }
        let streams = LogStream.all(of: partitions).filter { $0 != .meta }
        if let former { try former.checkImport(of: source) } else { try await checkEmpty(streams) }
        try keepKey()
        let cluster = try await ClusterIdentity.beginImport(of: source, partitions, without: taken, at: moment, changes)
        if let former {
            try await ClusterTrust.remove(changes)
            for stream in Set(streams + LogStream.all(of: former.partitions)) where stream != .meta {
                try await remove(stream)
            }
        }
        for stream in streams { try await open(stream, isNew: true, at: moment) }
        return cluster
    }

    /// Streams without the cluster's record may be those of a first start that was interrupted; they are empty then.
    private func checkEmpty(_ streams: [LogStream]) async throws {
        for stream in streams {
            do {
                let state = try await jetStream.streamInfo(stream.name).state
                guard state.messages == 0 else { throw ImportProblem.leftovers(stream: stream.name) }
            } catch let error as JetStreamError where error.refusal?.code == JetStreamRefusal.streamNotFound {
                continue
            }
        }
    }

    private func remove(_ stream: LogStream) async throws {
        do {
            try await jetStream.deleteStream(stream.name)
        } catch  where error.refusal?.code == JetStreamRefusal.streamNotFound {
            // It was never made, or is removed already.
        }
    }
}
