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
}
