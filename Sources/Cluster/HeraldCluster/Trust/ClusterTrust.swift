/// The record of a cluster's trust: its authority.
///
/// It is written when the first node has shared everything, so a node that finds it finds the rest too.
package struct ClusterTrust: LogRecord, Hashable {
    package static let kind: StaticString = "trust"
    private static let fingerprintBytes = 16
    private static let subject = LogSubject.meta("trust")

    /// The first 16 bytes of the SHA-256 of the root authority's certificate (DER).
    package let authority: [UInt8]

    /// - Parameter authority: Sixteen bytes.
    package init(authority: [UInt8]) {
        self.authority = authority
    }

    package init(fields: inout RecordReader) throws(RecordError) {
        let bytes = fields.rest()
        guard bytes.count == Self.fingerprintBytes else { throw fields.damaged }
        authority = bytes
    }

    package func write(to fields: inout RecordWriter) {
        fields.rest(authority)
    }

    /// Reads the cluster's record as of this call, or later; nil for a new cluster.
    /// - Throws: ``RecordError/setAside(_:)`` for one that no node wrote, or another error of the log.
    package static func read(_ changes: RecordChanges) async throws -> ClusterTrust? {
        try await changes.read(subject, in: .meta, as: ClusterTrust.self).record
    }

    /// Writes the record of a new cluster, or one that takes the place of another.
    /// - Throws: ``OtherTrust`` if another node was faster, or an error of the log.
    package func write(_ changes: RecordChanges, replaces: Bool) async throws {
        let own = self
        try await changes.change(Self.subject, in: .meta, from: Versioned<ClusterTrust>()) { record in
            if let cluster = record, !replaces { try own.check(cluster) }
            record = own
        }
    }

    /// Removes the record, with which an import begins again.
    package static func remove(_ changes: RecordChanges) async throws {
        let present = try await changes.read(subject, in: .meta, as: ClusterTrust.self)
        try await changes.change(subject, in: .meta, from: present) { $0 = nil }
    }

    private func check(_ cluster: ClusterTrust) throws(OtherTrust) {
        guard cluster.authority == authority else { throw .otherAuthority }
    }
}

extension ClusterTrust {
    /// The way in which a node comes to a cluster's trust.
    package enum Entry: Hashable, Sendable {
        /// The cluster is new: this node's trust becomes the cluster's.
        case first
        /// The node gets from the cluster what it lacks.
        case member
    }

    /// Decides how a node enters a cluster, with the root authority of its folder; nil if it has none yet.
    ///
    /// A cluster without a record is new, or has lost what it had.
    /// - Throws: ``OtherTrust``.
    package static func entry(to cluster: ClusterTrust?, authority: [UInt8]?) throws(OtherTrust) -> Entry {
        guard let cluster else { return .first }
        if let authority, authority != cluster.authority { throw .otherAuthority }
        return .member
    }
}

/// The error for a node that lacks the trust of its cluster.
package enum OtherTrust: Error, Hashable, CustomStringConvertible {
    case noKey
    case otherKey
    case otherAuthority

    package var description: String {
        switch self {
        case .noKey:
            "this node lacks the key of the cluster: copy trust/cluster.key from the data folder of another node, and name the "
                + "copy with --cluster-key"
        case .otherKey:
            "the cluster key of this node is not the cluster's: copy trust/cluster.key from the data folder of another node, "
                + "and name the copy with --cluster-key. If it is the same file, somebody has overwritten the cluster's record in "
                + "NATS: start a node first that has served this cluster"
        case .otherAuthority:
            "this folder's authorities are not those of the cluster: start with an empty data folder and --cluster-key, and the "
                + "node gets the cluster's"
        }
    }
}
