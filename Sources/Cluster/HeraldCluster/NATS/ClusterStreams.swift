package import HeraldModel
package import HeraldNATS

/// Makes the streams of a new cluster, and checks those of a present one.
package struct ClusterStreams: Sendable {
    let jetStream: JetStream
    private let replicas: Int

    package init(_ jetStream: JetStream, replicas: Int) {
        self.jetStream = jetStream
        self.replicas = replicas
    }

    /// Makes or checks all streams, and reads or makes the record of the cluster.
    ///
    /// The record is written last. So a stream that is missing beside it was lost, and is not made anew. `remembered`
    /// is the record as this node has seen it, for one that was overwritten; nil for none. `keepKey` keeps the key of a new cluster,
    /// before its record is sealed under it.
    /// - Throws: ``OtherTrust/otherKey``, ``StreamProblem``, ``ImportProblem``, ``ClusterIdentity/OtherPartitions``, or
    ///   an error of the log.
    package func open(
        _ partitions: Partitions,
        mayBeNew: Bool = true,
        known remembered: ClusterRecord? = nil,
        at moment: WallTime,
        _ changes: RecordChanges,
        keepKey: () throws -> Void = {}
    ) async throws -> ClusterRecord {
        try await open(.meta, isNew: true, at: moment)
        let known: ClusterRecord?
        do {
            known = try await ClusterIdentity.read(changes)
        } catch OtherTrust.otherKey {
            guard let remembered else { throw OtherTrust.otherKey }
            known = try await ClusterIdentity.restore(remembered, changes)
        }
        guard mayBeNew || known != nil else { throw ImportProblem.notImported }
        try known?.check(partitions)
        for stream in LogStream.all(of: partitions) where stream != .meta {
            try await open(stream, isNew: known == nil, at: moment)
        }
        if known == nil { try keepKey() }
        return try await ClusterIdentity.open(partitions, at: moment, changes)
    }

    func open(_ stream: LogStream, isNew: Bool, at moment: WallTime) async throws {
        let definition = StreamDefinition(stream, replicas: replicas)
        let present: StreamConfiguration
        if let found = try await configuration(of: stream) {
            present = found
        } else if isNew {
            present = try await create(definition.configuration(at: moment))
        } else {
            throw StreamProblem.missing(stream.name)
        }
        // One look suffices: each stream is made with the same number.
        guard stream != .meta || present.replicas == replicas else {
            throw StreamProblem.otherReplicas(present: present.replicas, wanted: replicas)
        }
        let differences = definition.differences(present)
        guard differences.isEmpty else { throw StreamProblem.differs(stream.name, differences) }
    }

    private func configuration(of stream: LogStream) async throws -> StreamConfiguration? {
        do {
            return try await jetStream.streamInfo(stream.name).configuration
        } catch {
            guard error.refusal?.code == JetStreamRefusal.streamNotFound else { throw error }
            return nil
        }
    }

    private func create(_ configuration: StreamConfiguration) async throws -> StreamConfiguration {
        var attempt = 1
        while true {
            do {
                return try await jetStream.createStream(configuration).configuration
            } catch {
                switch error.refusal?.code {
                // Another node was faster, with a first sequence of its own.
                case JetStreamRefusal.streamNameInUse:
                    return try await jetStream.streamInfo(configuration.name).configuration
                // Servers that have just started do not know each other yet.
                case JetStreamRefusal.noSuitablePeers where attempt < ClusterLimits.streamAttempts: break
                // No answer: the caller may try again.
                case nil: throw error
                default: throw StreamProblem.notMade(configuration.name, replicas: replicas, error.description)
                }
            }
            attempt += 1
            try await Task.sleep(for: ClusterLimits.streamPause)
        }
    }
}

/// A stream that is not as Herald needs it.
package enum StreamProblem: Error, Hashable, CustomStringConvertible {
    case differs(String, [String])
    case otherReplicas(present: Int, wanted: Int)
    case missing(String)
    case notMade(String, replicas: Int, String)

    package var description: String {
        switch self {
        case .differs(let name, let differences):
            "the stream \(name) is not as Herald made it: \(differences.joined(separator: "; ")). Herald does not change it: stop "
                + "all nodes and set it back with `nats stream edit \(name)`, or change the setting that differs"
        case .otherReplicas(let present, let wanted):
            "the cluster was made with \(present) replicas, which cannot be changed, and the setting cluster-replicas is "
                + "\(wanted): set cluster-replicas to \(present)"
        case .missing(let name):
            "the stream \(name) of this cluster is missing: its data are lost. Restore the cluster from a backup"
        case .notMade(let name, let replicas, let why):
            "cannot make the stream \(name) with \(replicas) replicas: \(why). It needs \(replicas) servers of one cluster, each "
                + "with JetStream"
        }
    }
}

extension JetStreamError {
    var refusal: JetStreamRefusal? {
        if case .refused(let refusal) = self { refusal } else { nil }
    }
}

extension JetStreamRefusal {
    /// Fewer servers than replicas are there.
    fileprivate static let noSuitablePeers = 10_005
}
