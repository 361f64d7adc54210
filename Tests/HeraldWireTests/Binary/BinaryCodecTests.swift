import HeraldModel
import HeraldWire
import NIOCore
import Testing

/// All that a decoder makes of some bytes, up to the first fault.
func decodeBinary(_ bytes: [UInt8], payloadBytes: Int = 2048) -> (frames: [BinaryFrame], left: Int) {
    var buffer = ByteBuffer(bytes: bytes)
    let decoder = BinaryFrameDecoder(payloadBytes: payloadBytes, frameBytes: 68 * 1024)
    var frames: [BinaryFrame] = []
    while let frame = decoder.next(&buffer) {
        frames.append(frame)
        if case .fault = frame { break }
    }
    return (frames, buffer.readableBytes)
}

struct BinaryCodecTests {
    @Test(arguments: 0..<3) func `a notification is read from the bytes of the documents`(_ index: Int) {
        let (bytes, notification) = BinarySamples.notifications[index]
        let (frames, left) = decodeBinary(bytes)
        #expect(frames == [.notification(notification)])
        #expect(left == 0)
    }

    @Test(arguments: 0..<3) func `a notification is written as the bytes of the documents`(_ index: Int) {
        let (bytes, notification) = BinarySamples.notifications[index]
        var buffer = ByteBuffer()
        let isWritten = buffer.writeNotification(notification)
        #expect(isWritten)
        #expect(Array(buffer.readableBytesView) == bytes)
    }

    @Test func `the documents' lengths are right`() {
        #expect(BinarySamples.notifications.map(\.bytes.count) == [59, 67, 83])
        #expect(BinarySamples.error.count == 6)
        #expect(BinarySamples.tuple.count == 38)
    }

    @Test func `an error response goes both ways`() {
        var buffer = ByteBuffer()
        let response = BinaryErrorResponse(.invalidToken, identifier: 0x0102_0304)
        buffer.writeErrorResponse(response)
        #expect(Array(buffer.readableBytesView) == BinarySamples.error)
        let read = buffer.readErrorResponse()
        #expect(read == response)
        #expect(buffer.readableBytes == 0)
    }

    @Test func `what is not an error response stays where it is`() {
        for bytes in [Array(BinarySamples.error.dropLast()), [7] + BinarySamples.error.dropFirst()] {
            var buffer = ByteBuffer(bytes: bytes)
            let read = buffer.readErrorResponse()
            #expect(read == nil)
            #expect(buffer.readableBytes == bytes.count)
        }
    }

    @Test func `a feedback tuple goes both ways`() throws {
        var buffer = ByteBuffer()
        buffer.writeFeedbackTuple(FeedbackTuple(time: WallTime(seconds: 1_700_000_000), token: BinarySamples.token))
        #expect(Array(buffer.readableBytesView) == BinarySamples.tuple)
        let tuple = try buffer.readFeedbackTuple()
        #expect(tuple == FeedbackTuple(time: 1_700_000_000, token: BinarySamples.token.bytes))
        #expect(buffer.readableBytes == 0)
    }

    @Test func `a tuple that is not complete waits, and one that cannot be is a fault`() throws {
        for count in 0..<BinarySamples.tuple.count {
            var buffer = ByteBuffer(bytes: BinarySamples.tuple.prefix(count))
            let tuple = try buffer.readFeedbackTuple()
            #expect(tuple == nil)
            #expect(buffer.readableBytes == count)
        }
        for length in [UInt16(0), 101, .max] {
            var buffer = ByteBuffer(bytes: [0, 0, 0, 1] + BinarySamples.bigEndian(length))
            #expect(throws: FeedbackFault.self) { try buffer.readFeedbackTuple() }
        }
    }

    @Test func `a tuple of a moment that has no place takes the nearest`() {
        #expect(FeedbackTuple(time: WallTime(seconds: -1), token: BinarySamples.token).time == 0)
        #expect(FeedbackTuple(time: WallTime(seconds: 1 << 40), token: BinarySamples.token).time == .max)
    }

    @Test(arguments: [1, 2, 3, 7, 50, 1000]) func `notifications of all forms come in pieces of any size`(size: Int) {
        let all = (0..<20).map { BinarySamples.notifications[$0 % 3] }
        let stream = all.flatMap(\.bytes)
        let decoder = BinaryFrameDecoder(payloadBytes: 2048, frameBytes: 68 * 1024)
        var buffer = ByteBuffer()
        var frames: [BinaryFrame] = []
        for start in Swift.stride(from: 0, to: stream.count, by: size) {
            buffer.writeBytes(stream[start..<min(stream.count, start + size)])
            while let frame = decoder.next(&buffer) { frames.append(frame) }
        }
        #expect(frames == all.map { .notification($0.notification) })
        #expect(buffer.readableBytes == 0)
    }

    @Test func `items come in any order`() {
        let items = [
            BinarySamples.identifierItem, BinarySamples.tokenItem, BinarySamples.payloadItem,
            (4, BinarySamples.bigEndian(UInt32(1_700_000_000))), (5, [10]),
        ]
        for shift in 0..<5 {
            let turned = (0..<5).map { items[($0 + shift) % 5] }
            for order in [turned, turned.reversed()] {
                #expect(
                    decodeBinary(BinarySamples.frame(order)).frames
                        == [.notification(BinarySamples.notifications[2].notification)]
                )
            }
        }
    }

    @Test func `identifier, expiration and priority may be left out, and unknown items are passed over`() {
        let bare = BinaryNotification(token: BinarySamples.pushToken, payload: BinarySamples.payload)
        let frames = [
            BinarySamples.frame(BinarySamples.tokenItem, BinarySamples.payloadItem),
            BinarySamples.frame(
                (9, [1, 2, 3]),
                BinarySamples.tokenItem,
                (0, []),
                BinarySamples.payloadItem,
                (255, [0])
            ),
        ]
        for frame in frames { #expect(decodeBinary(frame).frames == [.notification(bare)]) }
    }

    @Test func `the longest payload is taken, and the older limit is a setting`() {
        let notification = { (count: Int) in
            BinaryNotification(
                form: .enhanced,
                identifier: 1,
                expiration: 0,
                token: BinarySamples.pushToken,
                payload: Array(repeating: 32, count: count)
            )
        }
        for (limit, count, isTaken) in [(2048, 2048, true), (2048, 2049, false), (256, 256, true), (256, 257, false)] {
            var buffer = ByteBuffer()
            buffer.writeNotification(notification(count))
            let frames = decodeBinary(Array(buffer.readableBytesView), payloadBytes: limit).frames
            let expected: BinaryFrame =
                isTaken ? .notification(notification(count)) : .fault(BinaryFault(.invalidPayloadSize, identifier: 1))
            #expect(frames == [expected])
        }
    }

    @Test(arguments: BinaryNotification.Form.allCases, [1, 31, 33, 100])
    func `a token of another length is written whole, and refused by a Herald`(
        _ form: BinaryNotification.Form,
        _ length: Int
    ) throws {
        let token = try #require(PushToken(bytes: [UInt8](repeating: 7, count: length)))
        var buffer = ByteBuffer()
        buffer.writeNotification(
            BinaryNotification(form: form, identifier: 9, token: token, payload: BinarySamples.payload)
        )
        // After the command; identifier and expiration; the frame's length and the item's number.
        let start = [1, 9, 6][Int(form.rawValue)]
        let bytes = Array(buffer.readableBytesView)
        #expect(Array(bytes[start..<start + 2 + length]) == [0, UInt8(length)] + token.bytes)
        let fault = BinaryFault(
            .invalidTokenSize,
            identifier: form == .simple ? nil : 9,
            isAnswered: form != .simple
        )
        #expect(decodeBinary(bytes).frames == [.fault(fault)])
    }

    @Test func `a payload that no form can say is not written`() {
        var buffer = ByteBuffer()
        let payload = [UInt8](repeating: 32, count: 65_536)
        for form in BinaryNotification.Form.allCases {
            let notification = BinaryNotification(form: form, token: BinarySamples.pushToken, payload: payload)
            let isWritten = buffer.writeNotification(notification)
            #expect(!isWritten)
        }
        #expect(buffer.readableBytes == 0)
    }
}
