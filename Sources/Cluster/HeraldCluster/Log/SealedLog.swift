import NIOCore

/// A log whose records only the nodes of the cluster can read and write: it seals what goes to another log, and opens what comes.
///
/// What does not open was not written by a node for this place. It comes as an entry that is set aside: followers and readers
/// take it for nothing, and a change replaces it.
package struct SealedLog: ReplicatedLog {
    private let log: any ReplicatedLog
    private let bare: RecordSeal
    private let seal: RecordSeal
    private let setAside: SetAside

    /// A log for ``LogStream/meta``, which has the cluster's record; ``of(_:)`` has the other streams.
    ///
    /// Others can reach `log`. `setAside` hears of what does not open.
    package init(_ log: any ReplicatedLog, _ seal: RecordSeal, _ setAside: SetAside) {
        self.log = log
        bare = seal
        self.seal = seal
        self.setAside = setAside
    }

    private init(_ other: SealedLog, _ seal: RecordSeal) {
        (log, bare, setAside) = (other.log, other.bare, other.setAside)
        self.seal = seal
    }

    /// The log for all streams of an incarnation of the cluster.
    package func of(_ incarnation: UInt32) -> SealedLog { SealedLog(self, bare.of(incarnation)) }

    private func seal(of stream: LogStream) -> RecordSeal { stream == .meta ? bare : seal }

    package func append(
        _ message: LogMessage,
        to stream: LogStream,
        _ done: @escaping @Sendable (AppendOutcome) -> Void
    ) {
        guard message.isSealed else { return log.append(message, to: stream, done) }
        var sealed = message
        guard
            let payload = seal(of: stream).seal(
                message.payload,
                at: message.subject.text,
                if: message.expectedSequence
            )
        else { return done(.notSent) }
        sealed.payload = payload
        log.append(sealed, to: stream, done)
    }

    package func read(
        _ subjects: [LogSubject],
        in stream: LogStream,
        atLeast bound: UInt64,
        _ done: @escaping @Sendable (Result<[LogEntry], LogFailure>) -> Void
    ) {
        log.read(subjects, in: stream, atLeast: bound) { result in
            done(result.map { entries in entries.map { open($0, of: stream) } })
        }
    }

    package func follow(
        _ filters: [LogSubject],
        in stream: LogStream,
        after sequence: UInt64?,
        _ receive: @escaping LogReceiver
    ) -> StopFollowing {
        log.follow(filters, in: stream, after: sequence) { receive($0.map { open($0, of: stream) }) }
    }

    private func open(_ entry: LogEntry, of stream: LogStream) -> LogEntry {
        // The end of a notification is not sealed: whoever could forge it could overwrite the notification as well.
        if entry.isTombstone, entry.subject.slot != nil { return entry }
        let payload = seal(of: stream).open(entry.payload, at: entry.subject.text, if: entry.condition)
        if payload == nil { setAside.record(entry.subject) }
        return LogEntry(
            subject: entry.subject,
            sequence: entry.sequence,
            payload: payload ?? ByteBuffer(),
            isSetAside: payload == nil
        )
    }
}
