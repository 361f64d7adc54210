import HeraldCluster
import NIOCore
import Testing

/// Changes of one record whose outcome nobody knows.
@Suite struct RecordChangesTests {
    private let log = MemoryLog()
    private let changes: RecordChanges
    private let subject = LogSubject.meta("counter")

    init() throws {
        changes = RecordChanges(log: log, barriers: LogBarriers(log: log, node: try #require(NodeName("a"))))
    }

    /// Sets the counter to 7.
    private func change(from known: Versioned<CounterRecord>) async throws -> Versioned<CounterRecord> {
        try await withCheckedThrowingContinuation { continuation in
            changes.change(subject, in: .meta, from: known) {
                $0 = CounterRecord(next: 7)
            } _: {
                continuation.resume(with: $0.map(\.0))
            }
        }
    }

    /// Writes what another node would write.
    private func store(_ payload: ByteBuffer) async -> UInt64 {
        guard case .stored(let sequence) = await log.append(LogMessage(subject, payload: payload), to: .meta) else {
            return 0
        }
        return sequence
    }

    @Test func `a late write is not forgotten when the record cannot be read`() async throws {
        _ = await store(ByteBuffer(string: "of another version"))
        log.fail(.lostMessage)
        await #expect(throws: RecordChangeFailure.unknown) { try await change(from: Versioned()) }
        // The next change has written nothing yet.
        await #expect(throws: RecordError.self) { try await change(from: Versioned()) }
        let record = CounterRecord(next: 7)
        let sequence = await store(record.body)
        let appends = log.appends
        // The record is as it should be. It is written all the same, so that the late write is refused.
        let after = try await change(from: Versioned(record, sequence: sequence))
        #expect(after.sequence > sequence && log.appends == appends + 1)
        #expect(try await change(from: after) == after && log.appends == appends + 1)
    }
}
