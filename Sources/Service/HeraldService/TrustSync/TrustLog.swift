import HeraldCluster
import HeraldTrust

/// The trust that all nodes share, as records of the cluster's log.
package struct TrustLog: Sendable {
    let changes: RecordChanges
    let barriers: LogBarriers

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
        return try await changes.change(subject, in: .trust, from: Versioned<FactRecord>()) { record in
            let inLog = record.flatMap { self.fact($0, subject) }
            let fact = try edit(inLog)
            if fact != inLog { record = FactRecord(try fact.encoded()) }
            return fact
        }
    }

    /// Reads facts as of this call, or later; those that the log lacks are absent.
    /// - Throws: ``LogFailure``, or ``RecordError`` for a fact that this node cannot read.
    func read(_ keys: [SharedKey]) async throws -> [SharedFact] {
        let entries = try await withCheckedThrowingContinuation { continuation in
            barriers.read(keys.map { .trust($0.subject) }, in: .trust) { continuation.resume(with: $0) }
        }
        return try entries.map { entry in
            guard !entry.isSetAside else { throw RecordError.setAside(entry.subject) }
            guard let fact = fact(entry) else { throw RecordError.damaged(kind: "\(FactRecord.kind)") }
            return fact
        }
    }

    /// The fact of a message of the log; nil if this node cannot read it.
    func fact(_ entry: LogEntry) -> SharedFact? {
        (try? FactRecord(entry.payload)).flatMap { fact($0, entry.subject) }
    }

    private func fact(_ record: FactRecord, _ subject: LogSubject) -> SharedFact? {
        guard let fact = SharedFact(encoded: record.bytes), LogSubject.trust(fact.key.subject) == subject
        else { return nil }
        return fact
    }
}
