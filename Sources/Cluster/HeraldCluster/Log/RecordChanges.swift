import HeraldMailbox
import Synchronization

/// A record as of a sequence of its stream; without a record, the sequence of the tombstone, or 0.
package struct Versioned<Record: LogRecord & Equatable>: Sendable {
    package var record: Record?
    package var sequence: UInt64

    package init(_ record: Record? = nil, sequence: UInt64 = 0) {
        self.record = record
        self.sequence = sequence
    }
}

extension Versioned: Equatable {}

/// Makes the record with which a change begins if the log's own is set aside; throwing fails the change.
package struct Replacement<Record: Sendable>: Sendable {
    let make: @Sendable () throws -> Record?

    init(_ make: @escaping @Sendable () throws -> Record?) { self.make = make }
}

/// Changes of single records, by compare-and-set.
///
/// An edit may run more than once: on what this node knows, then on what the log has if that differs, or if an answer was
/// lost. So an edit that was made already changes nothing, or does no harm if it is made twice.
package final class RecordChanges: Sendable {
    private let log: any ReplicatedLog
    private let barriers: LogBarriers
    /// The records with a write that may still happen.
    ///
    /// The next change reads first, and then writes in any case: with
    /// another sequence, the late write is refused.
    private let uncertain = Mutex<Set<LogSubject>>([])

    package init(log: any ReplicatedLog, barriers: LogBarriers) {
        self.log = log
        self.barriers = barriers
    }

    /// Changes a record; an edit that sets it to nil removes it.
    ///
    /// The change begins with what this node knows of the record. If that is not the whole, the record is written even
    /// if the edit changes nothing that is known. If the log's own record is set aside, the change begins with
    /// `replacement`, by default what this node knows. After `timeToLive` the log removes what is written; nil to keep
    /// it.
    ///
    /// `done` is called once, from any thread, possibly before this returns: with the record that the log has now and
    /// the edit's value, or with a ``RecordChangeFailure``, the edit's error, or a ``RecordError``.
    package func change<Record: LogRecord & Equatable, Value: Sendable>(
        _ subject: LogSubject,
        in stream: LogStream,
        from known: Versioned<Record>,
        isWhole: Bool = true,
        timeToLive: Duration? = nil,
        whenSetAside replacement: Replacement<Record>? = nil,
        _ edit: @escaping @Sendable (inout Record?) throws -> Value,
        _ done: @escaping @Sendable (Result<(Versioned<Record>, Value), any Error>) -> Void
    ) {
        let change = Change(
            subject: subject,
            stream: stream,
            timeToLive: timeToLive,
            replacement: replacement ?? Replacement { known.record },
            edit: edit,
            done: done
        )
        if uncertain.withLock({ $0.contains(subject) }) {
            reread(change, isWhole: false, after: Attempt(mayHappenLate: true))
        } else {
            attempt(change, from: known, isWhole: isWhole, Attempt())
        }
    }

    /// Reads a record as of this call, or later; fails with ``RecordError/setAside(_:)`` for one that no node wrote.
    package func read<Record: LogRecord & Equatable>(
        _ subject: LogSubject,
        in stream: LogStream,
        as _: Record.Type = Record.self,
        _ done: @escaping @Sendable (Result<Versioned<Record>, any Error>) -> Void
    ) {
        barriers.read([subject], in: stream) { result in
            done(
                Result { () throws -> Versioned<Record> in
                    let entries = try result.get()
                    if let entry = entries.last, entry.isSetAside { throw RecordError.setAside(entry.subject) }
                    return try RecordChanges.newest(entries, as: Record.self)
                }
            )
        }
    }

    /// Reads a record as of a sequence that it has had, or later, from any replica; one that is set aside counts as none.
    ///
    /// Another node may have changed it since: only a compare-and-set on the result tells.
    package func look<Record: LogRecord & Equatable>(
        _ subject: LogSubject,
        in stream: LogStream,
        atLeast sequence: UInt64,
        _ done: @escaping @Sendable (Result<Versioned<Record>, any Error>) -> Void
    ) {
        log.read([subject], in: stream, atLeast: sequence) { result in
            done(Result { try RecordChanges.newest(try result.get(), as: Record.self) })
        }
    }

    /// Writes a record again that was overwritten by an entry which is set aside; nothing happens without one.
    ///
    /// If the log cannot be written, the next change of the record replaces the entry.
    func restore<Record: LogRecord & Equatable>(_ record: Record?, over entry: LogEntry, in stream: LogStream) {
        guard let record else { return }
        let known = Versioned(record, sequence: entry.sequence)
        change(entry.subject, in: stream, from: known, isWhole: false) { _ in
        } _: { _ in
        }
    }

    private struct Change<Record: LogRecord & Equatable, Value: Sendable>: Sendable {
        let subject: LogSubject
        let stream: LogStream
        let timeToLive: Duration?
        let replacement: Replacement<Record>
        let edit: @Sendable (inout Record?) throws -> Value
        let done: @Sendable (Result<(Versioned<Record>, Value), any Error>) -> Void

        func message(_ record: Record?, expecting sequence: UInt64) -> LogMessage {
            guard let record else { return .tombstone(subject, expecting: sequence, timeToLive: timeToLive) }
            return LogMessage(subject, payload: record.body, expectedSequence: sequence, timeToLive: timeToLive)
        }
    }

    private struct Attempt {
        var number = 1
        /// Whether a write of the record is under way of which nobody knows whether it will happen.
        var mayHappenLate = false
    }

    private func attempt<Record, Value>(
        _ change: Change<Record, Value>,
        from known: Versioned<Record>,
        isWhole: Bool,
        _ attempt: Attempt
    ) {
        var edited = known
        let value: Value
        do { value = try change.edit(&edited.record) } catch { return change.done(.failure(error)) }
        guard !isWhole || edited.record != known.record else { return change.done(.success((known, value))) }
        let record = edited.record
        log.append(change.message(record, expecting: known.sequence), to: change.stream) { [self] outcome in
            var attempt = attempt
            switch outcome {
            case .stored(let sequence):
                _ = uncertain.withLock { $0.remove(change.subject) }
                change.done(.success((Versioned(record, sequence: sequence), value)))
            case .moved where attempt.number < ClusterLimits.changeAttempts:
                attempt.number += 1
                reread(change, isWhole: true, after: attempt)
            case .unknown where attempt.number < ClusterLimits.changeAttempts:
                attempt.number += 1
                attempt.mayHappenLate = true
                reread(change, isWhole: true, after: attempt)
            case .moved, .unknown, .refused, .notSent:
                fail(change, RecordChangeFailure(outcome), attempt)
            }
        }
    }

    private func reread<Record, Value>(_ change: Change<Record, Value>, isWhole: Bool, after attempt: Attempt) {
        barriers.read([change.subject], in: change.stream) { [self] result in
            do {
                let entries = try result.get()
                let isSetAside = entries.last?.isSetAside ?? false
                var newest = try Self.newest(entries, as: Record.self)
                if isSetAside { newest.record = try change.replacement.make() }
                self.attempt(change, from: newest, isWhole: isWhole && !isSetAside, attempt)
            } catch LogFailure.refused(let refusal) {
                fail(change, .refused(refusal), attempt)
            } catch is LogFailure {
                fail(change, .notSent, attempt)
            } catch {
                // The record cannot be read, and a write that is under way may still replace it.
                if attempt.mayHappenLate { _ = uncertain.withLock { $0.insert(change.subject) } }
                // Only later attempts come after a write of this change.
                change.done(.failure(attempt.number > 1 && attempt.mayHappenLate ? RecordChangeFailure.unknown : error))
            }
        }
    }

    private func fail<Record, Value>(
        _ change: Change<Record, Value>,
        _ failure: RecordChangeFailure,
        _ attempt: Attempt
    ) {
        guard attempt.mayHappenLate || failure == .unknown else { return change.done(.failure(failure)) }
        _ = uncertain.withLock { $0.insert(change.subject) }
        change.done(.failure(RecordChangeFailure.unknown))
    }

    private static func newest<Record>(_ entries: [LogEntry], as _: Record.Type) throws -> Versioned<Record> {
        guard let entry = entries.last else { return Versioned() }
        let isThere = !entry.isTombstone && !entry.isSetAside
        return Versioned(isThere ? try Record(entry.payload) : nil, sequence: entry.sequence)
    }
}

/// The reason why a change did not happen, or why nobody knows whether it did.
package enum RecordChangeFailure: StoreOutcomeError, Hashable, CustomStringConvertible {
    /// No server took the change; nothing was changed.
    case notSent
    case refused(LogRefusal)
    /// Another node changed the record each time; nothing was changed.
    case contended
    /// The answer was lost, and the log could not be read: the change happened, or will, or will not.
    case unknown

    package var isUnknown: Bool { self == .unknown }

    init(_ outcome: AppendOutcome) {
        switch outcome {
        case .notSent: self = .notSent
        case .refused(let refusal): self = .refused(refusal)
        case .moved: self = .contended
        case .unknown, .stored: self = .unknown
        }
    }

    package var description: String {
        switch self {
        case .notSent: "no NATS server took the change; nothing was changed"
        case .refused(let refusal): "NATS refused the change: \(refusal.text) (\(refusal.code))"
        case .contended: "another node changes the same record all the time; nothing was changed"
        case .unknown: "NATS did not answer; the change may have been made"
        }
    }
}
