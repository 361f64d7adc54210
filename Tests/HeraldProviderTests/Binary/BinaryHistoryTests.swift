import HeraldModel
import HeraldWire
import NIOCore
import Testing

@testable import HeraldProvider

/// Outcome of everything written on a connection, from its one answer.
@Suite struct BinaryHistoryTests {
    private let start = NIODeadline.uptimeNanoseconds(1_000_000_000_000)

    /// Five notifications, a to e, with the identifiers 1 to 5, all of which left whole.
    private func five(flushedCount: Int = 5, limit: Int = 10) -> BinaryHistory<String> {
        var history = BinaryHistory<String>(limit: limit)
        for item in ["a", "b", "c", "d", "e"] { _ = history.write(item, nil, now: start) }
        history.flushed(flushedCount)
        return history
    }

    private func answer(_ status: BinaryStatus, _ identifier: UInt32) -> BinaryHistory<String>.Ending {
        .answered(BinaryErrorResponse(status, identifier: identifier))
    }

    @Test func `a refusal confirms everything before it and resends everything behind it`() {
        var history = five()
        let settlement = history.end(answer(.invalidToken, 3))
        #expect(settlement.accepted == ["a", "b"])
        #expect(settlement.refused?.item == "c" && settlement.refused?.status == .invalidToken)
        #expect(settlement.resend == ["d", "e"])
        #expect(settlement.uncertain.isEmpty && !settlement.namesCheckpoint && !settlement.namesUnknown)
        #expect(history.count == 0)
    }

    @Test(arguments: [BinaryStatus.missingDeviceToken, .protocolError, .unknown])
    func `an answer that names the checkpoint confirms all, whatever its status`(status: BinaryStatus) {
        var history = five()
        let checkpoint = history.writeCheckpoint()
        let settlement = history.end(answer(status, checkpoint))
        #expect(settlement.accepted == ["a", "b", "c", "d", "e"])
        #expect(settlement.namesCheckpoint && settlement.refused == nil && settlement.resend.isEmpty)
    }

    @Test func `a refusal before the checkpoint counts like any other`() {
        var history = five()
        _ = history.writeCheckpoint()
        let settlement = history.end(answer(.processingError, 1))
        #expect(settlement.accepted.isEmpty && settlement.refused?.item == "a" && settlement.resend.count == 4)
        #expect(!settlement.namesCheckpoint)
    }

    @Test func `a shutdown names the last that was accepted`() {
        var history = five()
        let settlement = history.end(answer(.shutdown, 3))
        #expect(settlement.accepted == ["a", "b", "c"] && settlement.resend == ["d", "e"])
        #expect(settlement.refused == nil && settlement.uncertain.isEmpty)
    }

    @Test func `status 0 says nothing about what was behind it`() {
        var history = five(flushedCount: 4)
        let settlement = history.end(answer(.noError, 2))
        #expect(settlement.accepted == ["a", "b"] && settlement.uncertain == ["c", "d"] && settlement.resend == ["e"])
    }

    @Test func `without an answer, flushed notifications are uncertain and the rest is resent`() {
        var history = five(flushedCount: 2)
        let settlement = history.end(.lost)
        #expect(settlement.uncertain == ["a", "b"] && settlement.resend == ["c", "d", "e"])
        #expect(settlement.accepted.isEmpty)
    }

    @Test(arguments: [BinaryStatus.invalidToken, .shutdown, .protocolError])
    func `an answer about a notification that was never written settles nothing`(status: BinaryStatus) {
        var history = five(flushedCount: 3)
        let settlement = history.end(answer(status, 0))
        #expect(settlement.namesUnknown)
        #expect(settlement.uncertain == ["a", "b", "c"] && settlement.resend == ["d", "e"])
        #expect(settlement.accepted.isEmpty && settlement.refused == nil)
    }

    @Test func `it is bounded, and takes nothing behind the checkpoint`() {
        var history = five(limit: 6)
        #expect(history.hasRoom(for: nil))
        _ = history.write("f", nil, now: start)
        #expect(!history.hasRoom(for: nil))
        var short = five()
        _ = short.writeCheckpoint()
        #expect(!short.hasRoom(for: nil))
        _ = short.end(.lost)
        #expect(short.hasRoom(for: nil))
    }

    @Test func `the checkpoint is due when the oldest has waited, or at once when it is full`() {
        var history = BinaryHistory<String>(limit: 2)
        #expect(history.checkpointDue(after: .seconds(1)) == nil)
        _ = history.write("a", nil, now: start)
        #expect(history.checkpointDue(after: .seconds(1)) == start + .seconds(1))
        _ = history.write("b", nil, now: start + .milliseconds(500))
        #expect(history.checkpointDue(after: .seconds(1)) == start)
        _ = history.writeCheckpoint()
        #expect(history.checkpointDue(after: .seconds(1)) == nil)
    }

    @Test func `an identifier is used once at a time, and 0 is never assigned`() {
        var history = BinaryHistory<String>(limit: 10, lastIdentifier: .max - 1)
        #expect(history.write("a", 1, now: start) == 1)
        #expect(!history.hasRoom(for: 1) && history.hasRoom(for: 2))
        #expect(history.write("b", nil, now: start) == .max)
        // 0 and 1 are left out.
        #expect(history.write("c", nil, now: start) == 2)
        #expect(history.writeCheckpoint() == 3)
        _ = history.end(.lost)
        #expect(history.hasRoom(for: 1))
    }

    @Test func `every service refuses the checkpoint and can read its identifier`() {
        var buffer = ByteBuffer()
        buffer.writeCheckpoint(0x0102_0304)
        let decoder = BinaryFrameDecoder(payloadBytes: 2048, frameBytes: 4096)
        #expect(decoder.next(&buffer) == .fault(BinaryFault(.missingDeviceToken, identifier: 0x0102_0304)))
        #expect(
            buffer.readableBytesView.elementsEqual(
                [2, 0, 0, 0, 15, 1, 0, 0, 2, 0, 2, 0x7B, 0x7D, 3, 0, 4, 1, 2, 3, 4]
            )
        )
    }
}
