import HeraldModel
import HeraldWire
import NIOCore
import Testing

struct BinaryHostileInputTests {
    private typealias Samples = BinarySamples

    @Test(arguments: 0..<3) func `every prefix waits for more and takes nothing`(_ index: Int) {
        let bytes = BinarySamples.notifications[index].bytes
        for count in 0..<bytes.count {
            let (frames, left) = decodeBinary(Array(bytes.prefix(count)))
            #expect(frames == [])
            #expect(left == count)
        }
    }

    @Test func `every first byte but three is a fault at once`() {
        for command in UInt8(3)...255 {
            #expect(decodeBinary([command]).frames == [.fault(BinaryFault(.protocolError, identifier: nil))])
        }
    }

    @Test(arguments: [
        (UInt16(0), BinaryStatus.missingDeviceToken), (1, .invalidTokenSize), (31, .invalidTokenSize),
        (33, .invalidTokenSize), (100, .invalidTokenSize), (.max, .invalidTokenSize),
    ])
    func `a token of another length is a fault before it has come`(length: UInt16, status: BinaryStatus) {
        #expect(
            decodeBinary([0] + Samples.bigEndian(length)).frames
                == [.fault(BinaryFault(status, identifier: nil, isAnswered: false))]
        )
        #expect(
            decodeBinary([1, 0, 0, 0, 7, 0, 0, 0, 0] + Samples.bigEndian(length)).frames
                == [.fault(BinaryFault(status, identifier: 7))]
        )
    }

    @Test(arguments: [
        (UInt16(0), BinaryStatus.missingPayload), (2049, .invalidPayloadSize), (.max, .invalidPayloadSize),
    ])
    func `a payload of a length that cannot be is a fault before it has come`(length: UInt16, status: BinaryStatus) {
        let token = [0, 32] + Samples.token.bytes
        #expect(
            decodeBinary([0] + token + Samples.bigEndian(length)).frames
                == [.fault(BinaryFault(status, identifier: nil, isAnswered: false))]
        )
        #expect(
            decodeBinary([1, 0, 0, 0, 7, 0, 0, 0, 0] + token + Samples.bigEndian(length)).frames
                == [.fault(BinaryFault(status, identifier: 7))]
        )
    }

    @Test(
        arguments: [
            ([BinarySamples.identifierItem], BinaryStatus.missingDeviceToken),
            ([BinarySamples.payloadItem, BinarySamples.identifierItem], .missingDeviceToken),
            ([BinarySamples.identifierItem, (1, []), BinarySamples.payloadItem], .missingDeviceToken),
            ([BinarySamples.identifierItem, (1, [1]), BinarySamples.payloadItem], .invalidTokenSize),
            (
                [(1, Array(repeating: 1, count: 100)), BinarySamples.payloadItem, BinarySamples.identifierItem],
                .invalidTokenSize
            ),
            ([BinarySamples.tokenItem, BinarySamples.identifierItem], .missingPayload),
            ([BinarySamples.tokenItem, (2, []), BinarySamples.identifierItem], .missingPayload),
            (
                [BinarySamples.tokenItem, (2, Array(repeating: 32, count: 2049)), BinarySamples.identifierItem],
                .invalidPayloadSize
            ),
            (
                [BinarySamples.tokenItem, (2, Array(repeating: 32, count: 65_535)), BinarySamples.identifierItem],
                .invalidPayloadSize
            ),
            (
                [
                    BinarySamples.tokenItem, BinarySamples.payloadItem, BinarySamples.tokenItem,
                    BinarySamples.identifierItem,
                ], .protocolError
            ),
            (
                [
                    BinarySamples.tokenItem, BinarySamples.payloadItem, BinarySamples.payloadItem,
                    BinarySamples.identifierItem,
                ], .protocolError
            ),
            (
                [
                    BinarySamples.identifierItem, BinarySamples.tokenItem, BinarySamples.payloadItem,
                    BinarySamples.identifierItem,
                ], .protocolError
            ),
            (
                [
                    BinarySamples.identifierItem, BinarySamples.tokenItem, BinarySamples.payloadItem, (5, [10]),
                    (5, [10]),
                ], .protocolError
            ),
            (
                [BinarySamples.identifierItem, BinarySamples.tokenItem, BinarySamples.payloadItem, (5, [1])],
                .protocolError
            ),
            (
                [BinarySamples.identifierItem, BinarySamples.tokenItem, BinarySamples.payloadItem, (5, [7])],
                .protocolError
            ),
            (
                [BinarySamples.identifierItem, BinarySamples.tokenItem, BinarySamples.payloadItem, (5, [])],
                .protocolError
            ),
            (
                [BinarySamples.identifierItem, BinarySamples.tokenItem, BinarySamples.payloadItem, (5, [0, 10])],
                .protocolError
            ),
            (
                [BinarySamples.identifierItem, BinarySamples.tokenItem, BinarySamples.payloadItem, (4, [1, 2, 3])],
                .protocolError
            ),
            (
                [
                    BinarySamples.identifierItem, BinarySamples.tokenItem, BinarySamples.payloadItem,
                    (4, Array(repeating: 0, count: 8)),
                ], .protocolError
            ),
        ] as [([(UInt8, [UInt8])], BinaryStatus)]
    )
    func `a faulty frame has its status, and its identifier wherever it stands`(
        items: [(UInt8, [UInt8])],
        status: BinaryStatus
    ) {
        #expect(decodeBinary(Samples.frame(items)).frames == [.fault(BinaryFault(status, identifier: 0x0102_0304))])
    }

    @Test func `an identifier of another length is not an identifier`() {
        for content in [[], [1], [1, 2, 3], [1, 2, 3, 4, 5]] as [[UInt8]] {
            let frame = Samples.frame(Samples.tokenItem, Samples.payloadItem, (3, content))
            #expect(decodeBinary(frame).frames == [.fault(BinaryFault(.protocolError, identifier: nil))])
        }
    }

    @Test func `every length of every item that lies ends in a fault, and never outside the frame`() {
        let frame = Samples.framed
        for lengthIndex in [6, 41, 66, 73, 80] {
            for length in [UInt16(0), 1, 3, 5, 31, 33, 64, 78, 255, 2048, .max] {
                var bytes = frame
                bytes.replaceSubrange(lengthIndex..<lengthIndex + 2, with: Samples.bigEndian(length))
                guard bytes != frame else { continue }
                let (frames, _) = decodeBinary(bytes + frame)
                guard case .fault? = frames.first else {
                    Issue.record("length \(length) at \(lengthIndex) was taken: \(frames)")
                    continue
                }
                #expect(frames.count == 1)
            }
        }
    }

    @Test func `a frame longer than any can be is a fault at once`() {
        for length in [UInt32(68 * 1024 + 1), 1 << 31, .max] {
            #expect(
                decodeBinary([2] + Samples.bigEndian(length)).frames
                    == [.fault(BinaryFault(.protocolError, identifier: nil))]
            )
        }
        #expect(decodeBinary([2] + Samples.bigEndian(UInt32(68 * 1024))).frames == [])
        #expect(decodeBinary([2, 0, 0, 0, 0]).frames == [.fault(BinaryFault(.missingDeviceToken, identifier: nil))])
    }

    @Test func `whatever comes, no decoder traps`() {
        var generator = SystemRandomNumberGenerator()
        for _ in 0..<5000 {
            let count = Int.random(in: 1...120, using: &generator)
            var bytes = (0..<count).map { _ in UInt8.random(in: 0...255, using: &generator) }
            bytes[0] = UInt8.random(in: 0...2, using: &generator)
            if bytes[0] == 2, count > 5 { bytes.replaceSubrange(1..<5, with: [0, 0, 0, UInt8(count - 5)]) }
            _ = decodeBinary(bytes)
            var buffer = ByteBuffer(bytes: bytes)
            _ = try? buffer.readFeedbackTuple()
            _ = buffer.readErrorResponse()
        }
    }

    @Test func `every byte of a good frame may be any other`() {
        for index in Samples.framed.indices {
            for value in UInt8.min...UInt8.max {
                var bytes = Samples.framed
                bytes[index] = value
                // A payload's length that lies may swallow what stands behind it, and no more than that.
                for case .notification(let notification) in decodeBinary(bytes).frames
                where notification.payload.count > bytes.count {
                    Issue.record("\(value) at \(index) made a payload of \(notification.payload.count) bytes")
                }
            }
        }
    }
}
