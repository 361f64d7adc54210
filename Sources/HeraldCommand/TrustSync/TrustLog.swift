import HeraldCluster
import HeraldTrust

/// The trust that all nodes share, as sealed records of the cluster's log.
struct TrustLog: Sendable {
    /// A record that this node cannot read.
    enum Unreadable: Error, CustomStringConvertible {
        case otherKey(LogSubject)

        var description: String {
            switch self {
            case .otherKey(let subject):
                "the record \(subject) of the cluster's trust does not open under this node's cluster key: copy "
                    + "trust/cluster.key from the data folder of another node, and name the copy with --cluster-key"
            }
        }
    }

    let key: ClusterKey
    let changes: RecordChanges
    let barriers: LogBarriers
    /// Whether this node's facts take the place of records that do not open.
    let replaces: Bool

    /// Stores a fact, merged with what the log has of it.
    /// - Returns: The fact as the log has it now.
    /// - Throws: ``RecordChangeFailure``, or another error of the log; the fact may have been stored.
    func share(_ fact: SharedFact) async throws -> SharedFact {
        try await change(fact.key) { inLog in inLog.map { SharedFact.merge(log: $0, own: fact) } ?? fact }
    }

    /// Changes a fact by compare-and-set; the edit may run more than once.
    /// - Returns: The fact as the log has it now.
    func change(
        _ key: SharedKey,
        _ edit: @escaping @Sendable (SharedFact?) throws -> SharedFact
    ) async throws -> SharedFact {
        let subject = LogSubject.trust(key.subject)
        return try await changes.change(subject, in: .trust, from: Versioned<SealedRecord>()) { record in
            let inLog = try record.flatMap { try opened($0, subject) }
            let fact = try edit(inLog)
            if fact != inLog { record = SealedRecord(try self.key.seal(try fact.encoded(), as: subject.text)) }
            return fact
        }
    }

    private func opened(_ record: SealedRecord, _ subject: LogSubject) throws -> SharedFact? {
        if let fact = fact(record, subject) { return fact }
        guard replaces else { throw Unreadable.otherKey(subject) }
        return nil
    }

    /// Reads facts as of this call, or later; those that the log lacks are absent.
    /// - Throws: ``LogFailure``, or ``Unreadable``.
    func read(_ keys: [SharedKey]) async throws -> [SharedFact] {
        let entries = try await withCheckedThrowingContinuation { continuation in
            barriers.read(keys.map { .trust($0.subject) }, in: .trust) { continuation.resume(with: $0) }
        }
        return try entries.map { entry in
            guard let fact = fact(entry) else { throw Unreadable.otherKey(entry.subject) }
            return fact
        }
    }

    /// Opens a message of the log; nil if this node cannot read it.
    func fact(_ entry: LogEntry) -> SharedFact? {
        (try? SealedRecord(entry.payload)).flatMap { fact($0, entry.subject) }
    }

    private func fact(_ record: SealedRecord, _ subject: LogSubject) -> SharedFact? {
        guard let fact = key.open(record.bytes, as: subject.text).flatMap({ SharedFact(encoded: $0) }),
            LogSubject.trust(fact.key.subject) == subject
        else { return nil }
        return fact
    }
}
