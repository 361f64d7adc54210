package import NIOCore

/// A record in the body of a log's message: a version, then its fields, most significant byte first.
///
/// A body is foreign data: reading it may throw, and never traps. Every record has one form only.
package protocol LogRecord: Sendable {
    /// The kind of the record, for errors: "app".
    static var kind: StaticString { get }

    /// Reads the fields; the version has been read.
    init(fields: inout RecordReader) throws(RecordError)

    func write(to fields: inout RecordWriter)

    /// About the bytes of the body.
    var capacity: Int { get }
}

extension LogRecord {
    /// Reads a whole body.
    /// - Throws: ``RecordError`` if the body is damaged, or of another version.
    package init(_ body: ByteBuffer) throws(RecordError) {
        var reader = RecordReader(body, kind: Self.kind)
        let version = try reader.integer(UInt8.self)
        guard version == RecordWriter.version else { throw .otherVersion(version, kind: "\(Self.kind)") }
        try self.init(fields: &reader)
        try reader.finish()
    }

    package var capacity: Int { 64 }

    /// The whole body.
    package var body: ByteBuffer {
        var writer = RecordWriter(capacity: capacity)
        write(to: &writer)
        return writer.bytes
    }
}

/// The reason why a record cannot be read.
package enum RecordError: Error, Hashable, CustomStringConvertible {
    case damaged(kind: String)
    /// It has a version that this Herald does not read.
    case otherVersion(UInt8, kind: String)
    /// No node of this cluster wrote what the subject has.
    case setAside(LogSubject)

    package var description: String {
        switch self {
        case .damaged(let kind): "a record in the cluster's log is damaged (\(kind)): restore the cluster from a backup"
        case .otherVersion(let version, let kind):
            "a record in the cluster's log has version \(version), and this Herald reads version \(RecordWriter.version) "
                + "(\(kind)): use the Herald that wrote it, or a newer one"
        case .setAside(let subject):
            "somebody else than a node of this cluster has written \(subject) to NATS, so it was set aside: start a node first that "
                + "has served this cluster (docs/cluster.md, who holds the account)"
        }
    }
}
