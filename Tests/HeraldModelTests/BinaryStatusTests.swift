import HeraldModel
import Testing

struct BinaryStatusTests {
    @Test func `every refusal reason has a documented binary status`() {
        for refusalReason in RefusalReason.allCases {
            #expect(BinaryStatus.known.contains(refusalReason.binaryStatus))
            #expect(refusalReason.binaryStatus != .noError)
        }
        #expect(Set(BinaryStatus.known.map(\.rawValue)) == [0, 1, 2, 3, 4, 5, 6, 7, 8, 10, 128, 255])
    }

    @Test func `a refusal reason that clients repeat advises to retry later`() {
        for refusalReason in RefusalReason.allCases where refusalReason.binaryStatus == .processingError {
            #expect(refusalReason.advice == .retryLater)
        }
    }

    @Test func `a status and its reason agree`() {
        for status in BinaryStatus.known {
            guard let refusalReason = status.refusalReason else { continue }
            // Of the two statuses of a bad token, one is of its size.
            #expect(refusalReason.binaryStatus == (status == .invalidTokenSize ? .invalidToken : status))
        }
        let without: [BinaryStatus] = [.noError, .shutdown, .protocolError, .unknown, BinaryStatus(rawValue: 77)]
        #expect(without.allSatisfy { $0.refusalReason == nil })
    }
}
