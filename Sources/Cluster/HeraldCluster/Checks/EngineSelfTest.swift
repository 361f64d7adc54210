import NIOCore

/// Tests on a record of its own that the log keeps the conditions that Herald relies on.
///
/// An engine whose meaning of a condition changed must not be served: it would remove newer notifications with older ones.
package struct EngineSelfTest: Sendable {
    private let log: any ReplicatedLog
    private let stream: LogStream
    private let subject: LogSubject

    package init(_ log: any ReplicatedLog, node: NodeName) {
        self.log = log
        stream = .meta
        subject = .selfTest(of: node)
    }

    /// Runs the test; it takes some round trips.
    /// - Returns: The condition that is not kept; nil if all are, or if the log cannot be reached, which is not its fault.
    package func run() async -> ClusterFinding? {
        guard case .stored(let first) = await append("first", expecting: nil) else { return nil }
        switch await append("late", expecting: first - 1) {
        case .moved(first): break
        case .notSent, .unknown, .refused: return nil
        case let other: return fault("a write that expects an older sequence is not refused (\(other))")
        }
        let second: UInt64
        switch await append("second", expecting: first) {
        case .stored(let sequence) where sequence > first: second = sequence
        case .notSent, .unknown, .refused: return nil
        case .stored, .moved: return fault("a write that expects the present sequence is not taken")
        }
        switch await read(atLeast: second) {
        case .success(let entries):
            guard entries.map(\.sequence) == [second] else {
                return fault("a read as of sequence \(second) has \(entries.map(\.sequence))")
            }
        case .failure: return nil
        }
        switch await append("late again", expecting: first) {
        case .moved(second), .notSent, .unknown, .refused: return nil
        case .stored, .moved: return fault("a write that expects a replaced message is not refused")
        }
    }

    private func fault(_ text: String) -> ClusterFinding {
        ClusterFinding(
            .refusal,
            "the NATS servers do not keep a condition that Herald relies on: \(text)",
            remedy: "use a version of nats-server that docs/cluster.md names"
        )
    }

    private func append(_ text: String, expecting sequence: UInt64?) async -> AppendOutcome {
        let message = LogMessage(subject, payload: ByteBuffer(string: text), expectedSequence: sequence)
        return await log.append(message, to: stream)
    }

    private func read(atLeast bound: UInt64) async -> Result<[LogEntry], LogFailure> {
        await withCheckedContinuation { continuation in
            log.read([subject], in: stream, atLeast: bound) { continuation.resume(returning: $0) }
        }
    }
}

extension LogSubject {
    /// The record on which a node tests the log.
    static func selfTest(of node: NodeName) -> LogSubject { .meta("selftest.\(node.text)") }
}
