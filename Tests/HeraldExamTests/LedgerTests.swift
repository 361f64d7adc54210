import HeraldMailbox
import HeraldModel
import Testing

@testable import HeraldExam
@testable import HeraldGateway

/// The assignment of requests to pushes.
@Suite struct LedgerTests {
    private final class Connection: CompletionHandler {
        func settle(_ number: UInt64, _ outcome: CompletionOutcome) {}
    }

    private let ledger = Ledger(scenario: "busy", hasWords: false, movesClock: false)
    private let slot = Slot(device: DeviceNumber(1), app: AppNumber(1))
    private let former = Slot(device: DeviceNumber(2), app: AppNumber(1))

    private func request(_ payload: String, _ slot: Slot? = nil, unopened token: String? = nil) -> CaughtMessage {
        var message = CaughtMessage(
            time: WallTime(seconds: 1),
            environment: .production,
            topic: nil,
            payload: Array(payload.utf8)
        )
        (message.slot, message.unopenedToken, message.connection) = (slot, token, Connection())
        return message
    }

    private func counts(_ message: CaughtMessage) -> [Int] {
        for number in 0..<2 {
            let token = number == 0 ? "ab" : "cd"
            let push = ExamPush(number: number, token: token, payload: "{}", shape: .plain, expiration: nil)
            ledger.add(push, slot: number == 0 ? slot : nil)
        }
        ledger.note(message)
        return ledger.evidence.pushes.map(\.requests.count) + [ledger.evidence.unmatched, ledger.evidence.stale]
    }

    @Test func `a request is for the push of its device, or of its mark`() {
        #expect(counts(request("{}", slot)) == [1, 0, 0, 0])
        #expect(counts(request(#"{"exam":"busy/1"}"#)).prefix(2) == [1, 1])
    }

    @Test func `a token that Herald did not make stands in the path`() {
        #expect(counts(request(#"{"exam":"busy/0"}"#, unopened: "CD")) == [0, 1, 0, 0])
        #expect(counts(request("{}", unopened: "ef")).suffix(2) == [1, 0])
    }

    @Test(arguments: [#"{"exam":"reuse/0"}"#, "{}"])
    func `a request for an earlier scenario is not charged to this one`(_ payload: String) {
        #expect(counts(request(payload, former)) == [0, 0, 0, 1])
    }

    @Test func `a request that was missed counts`() {
        ledger.noteMissed(7)
        #expect(ledger.evidence.unmatched == 7)
    }
}
