/// Decides whether this process may use its node's name: one process at a time may.
///
/// The process renews its record in the log. One on another folder takes the name over when the record was not renewed for a
/// while, or says that its process has left. The log decides between the two: each renewal expects the one before, so a
/// process that was taken for dead is refused when it comes back, and stops. Until then it loses nothing, because every
/// notification is stored before it is accepted.
package struct NodeNameMachine: Sendable {
    /// The record as the log has it.
    package struct Seen: Hashable, Sendable {
        /// 0 if there is none.
        package let sequence: UInt64
        package let record: NodeRecord?
    }

    package enum Order: Hashable, Sendable {
        /// Write the own record, if the present one has this sequence.
        case write(expecting: UInt64)
        /// Read the record after this time.
        case read(after: Duration)
        /// Read the record now.
        case readNow
        /// Another process has the name: stop, or do not start.
        case giveWay(to: NodeRecord)
        /// The process has the name; write again after this time.
        case serve(renewAfter: Duration)
    }

    private enum State: Hashable, Sendable {
        /// The record of another folder was seen, and not renewed since, for this time.
        case watching(Seen, unchangedFor: Duration)
        /// The own record is being written.
        case writing(expecting: UInt64)
        case serving(UInt64)
    }

    /// The time between two renewals.
    package static let renewal = Duration.seconds(2)
    /// The time between two looks at the record of another folder.
    package static let look = Duration.seconds(1)
    /// The time without a renewal after which a node counts as gone: longer than the servers need to elect a leader.
    package static let silence = Duration.seconds(15)

    private let own: NodeRecord
    private var state: State?

    package init(own: NodeRecord) {
        self.own = own
    }

    /// The record of another node that is being watched.
    package var watched: NodeRecord? {
        guard case .watching(let seen, _)? = state else { return nil }
        return seen.record
    }

    /// The log has this record.
    package mutating func read(_ seen: Seen) -> Order {
        guard let record = seen.record else { return write(expecting: seen.sequence) }
        let isFree = record.state == .left
        if record.incarnation == own.incarnation {
            state = .serving(seen.sequence)
            // Its answer was lost: what stood still may have cost the time of several renewals.
            return .serve(renewAfter: .zero)
        }
        switch state {
        case .writing(let sequence) where sequence == seen.sequence:
            // The write did not happen, or not yet: it is made again.
            return write(expecting: sequence)
        case .serving, .writing:
            return .giveWay(to: record)
        case nil:
            // This folder's former process is dead: the lock proves it.
            if isFree || record.folder == own.folder { return write(expecting: seen.sequence) }
            state = .watching(seen, unchangedFor: .zero)
            return .read(after: Self.look)
        case .watching(let before, let time):
            guard before == seen || isFree else { return .giveWay(to: record) }
            if isFree { return write(expecting: seen.sequence) }
            let time = time + Self.look
            guard time < Self.silence else { return write(expecting: seen.sequence) }
            state = .watching(seen, unchangedFor: time)
            return .read(after: Self.look)
        }
    }

    /// The record could not be read.
    package func couldNotRead() -> Order { .read(after: Self.look) }

    /// The write that was ordered has this outcome.
    package mutating func wrote(_ outcome: AppendOutcome) -> Order {
        switch outcome {
        case .stored(let sequence):
            state = .serving(sequence)
            return .serve(renewAfter: Self.renewal)
        case .moved, .unknown: return .readNow
        case .notSent, .refused: return .read(after: Self.look)
        }
    }

    /// It is time to renew the record.
    package mutating func renew() -> Order {
        guard case .serving(let sequence) = state else { return .readNow }
        return write(expecting: sequence)
    }

    /// The sequence of the own record; nil if this process does not have the name.
    package var held: UInt64? {
        if case .serving(let sequence) = state { sequence } else { nil }
    }

    private mutating func write(expecting sequence: UInt64) -> Order {
        state = .writing(expecting: sequence)
        return .write(expecting: sequence)
    }
}
