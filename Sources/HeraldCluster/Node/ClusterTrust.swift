/// The trust that a cluster's node must have: a node with other authorities or without a token key would refuse valid tokens.
package struct ClusterTrust: LogRecord, Hashable {
    package static let kind: StaticString = "trust"
    private static let fingerprintBytes = 16
    private static let subject = LogSubject.meta("trust")

    /// The first 16 bytes of the SHA-256 of the root authority's certificate (DER).
    package let authority: [UInt8]
    /// The number of the newest token key; numbers rise.
    package private(set) var newestTokenKey: UInt32

    /// - Parameters:
    ///   - authority: At least 16 bytes, of which the first 16 count.
    ///   - newestTokenKey: The number of the newest token key.
    package init(authority: some Sequence<UInt8>, newestTokenKey: UInt32) {
        self.authority = Array(authority.prefix(Self.fingerprintBytes))
        self.newestTokenKey = newestTokenKey
    }

    package init(fields: inout RecordReader) throws(RecordError) {
        let high: UInt64 = try fields.integer()
        let low: UInt64 = try fields.integer()
        authority = [high, low].flatMap { word in (0..<8).map { UInt8(truncatingIfNeeded: word >> UInt64(56 - 8 * $0)) }
        }
        newestTokenKey = try fields.integer()
    }

    package func write(to fields: inout RecordWriter) {
        for word in 0..<2 {
            fields.integer(authority.dropFirst(8 * word).prefix(8).reduce(UInt64(0)) { $0 << 8 | UInt64($1) })
        }
        fields.integer(newestTokenKey)
    }

    /// Compares the trust of this node with the cluster's, and notes a newer token key.
    /// - Parameters:
    ///   - changes: Changes the cluster's record.
    ///   - replaces: Whether this node's trust becomes the cluster's, whatever that was.
    /// - Throws: ``OtherTrust``, or an error of the log.
    package func join(_ changes: RecordChanges, replaces: Bool) async throws {
        let own = self
        try await changes.change(Self.subject, in: .meta, from: Versioned<ClusterTrust>()) { record in
            if let cluster = record, !replaces {
                guard cluster.authority == own.authority else { throw OtherTrust.authority }
                guard cluster.newestTokenKey <= own.newestTokenKey else {
                    throw OtherTrust.tokenKey(cluster.newestTokenKey)
                }
            }
            record = own
        }
    }
}

/// The error for a node that lacks the trust of its cluster.
package enum OtherTrust: Error, Hashable, CustomStringConvertible {
    case authority
    case tokenKey(UInt32)

    package var description: String {
        let remedy = "restore a backup of the node that served it before (herald restore), and start from that folder"
        return switch self {
        case .authority:
            "this folder's authorities are not those of the cluster, whose tokens it would refuse: \(remedy)"
        case .tokenKey(let key):
            "this folder lacks token key \(key) of the cluster, whose tokens it would refuse: \(remedy)"
        }
    }
}
