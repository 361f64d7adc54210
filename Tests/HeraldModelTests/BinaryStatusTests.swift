import HeraldModel
import Testing

struct BinaryStatusTests {
    @Test func `every refusal has a status that the documents name`() {
        for rejection in Rejection.allCases {
            #expect(BinaryStatus.known.contains(rejection.binaryStatus))
            #expect(rejection.binaryStatus != .noError)
        }
        #expect(Set(BinaryStatus.known.map(\.rawValue)) == [0, 1, 2, 3, 4, 5, 6, 7, 8, 10, 128, 255])
    }

    @Test func `what may be sent again has a status that clients send again`() {
        for rejection in Rejection.allCases where rejection.binaryStatus == .processingError {
            #expect(rejection.advice == .retryLater)
        }
    }

    @Test func `a status that a client reads as a reason is the status of that reason`() {
        for status in BinaryStatus.known {
            guard let rejection = status.rejection else { continue }
            // Of the two statuses of a bad token, one is of its size.
            #expect(rejection.binaryStatus == (status == .invalidTokenSize ? .invalidToken : status))
        }
        let without: [BinaryStatus] = [.noError, .shutdown, .protocolError, .unknown, BinaryStatus(rawValue: 77)]
        #expect(without.allSatisfy { $0.rejection == nil })
    }
}
