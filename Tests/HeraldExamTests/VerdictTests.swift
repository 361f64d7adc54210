import Foundation
import HeraldModel
import Testing

@testable import HeraldExam

/// Verdicts on pushes, requests and words.
@Suite struct VerdictTests {
    private final class Connection: Sendable {}

    private let connection = Connection()

    private func request(
        at time: Int64,
        accepted: Bool = true,
        answered: Int64?,
        status: Int? = 200,
        id: String? = "a",
        connection other: Connection? = nil,
        headers: [String: String] = [:],
        payload: String = "{}"
    ) -> ExamRequest {
        ExamRequest(
            time: WallTime(seconds: time),
            isAccepted: accepted,
            status: answered == nil ? nil : status,
            answered: answered.map { WallTime(seconds: $0) },
            reason: nil,
            apnsID: id,
            headers: headers,
            payload: Array(payload.utf8),
            connection: ObjectIdentifier(other ?? connection),
            providerToken: 1
        )
    }

    private func push(
        _ requests: [ExamRequest],
        _ word: ExamWord.Outcome?,
        at time: Int64 = 20,
        _ shape: PushShape = .plain
    ) -> PushRecord {
        let push = ExamPush(number: 0, token: "ab", payload: "{}", shape: shape, expiration: nil)
        let said = word.map { ExamWord(outcome: $0, time: WallTime(seconds: time)) }
        return PushRecord(push: push, requests: requests, word: said)
    }

    private func verdict(_ record: PushRecord, _ cut: Cut? = nil, hasWords: Bool = true) -> Verdict {
        Evidence(pushes: [record], hasWords: hasWords).verdict(record, cut)
    }

    @Test func `a push is lost, told or lied about by what the sender says of it`() {
        let refused = request(at: 10, accepted: false, answered: 10, status: 503)
        #expect(verdict(push([request(at: 10, answered: 11)], .accepted)) == .once)
        #expect(verdict(push([refused], .refused)) == .lostAndTold)
        #expect(verdict(push([], .unknown)) == .lostAndTold)
        #expect(verdict(push([refused], nil)) == .lostInSilence)
        #expect(verdict(push([refused], .accepted)) == .lied)
        #expect(verdict(push([request(at: 10, answered: 11)], nil)) == .unanswered)
        #expect(verdict(push([request(at: 10, answered: 11)], nil), hasWords: false) == .once)
        #expect(verdict(push([request(at: 10, answered: 11)], .accepted, at: 9)) == .lied)
    }

    @Test func `without words, an answer is not silence, and the status of the one command for a push is its word`() {
        let refused = request(at: 10, accepted: false, answered: 10, status: 410)
        #expect(verdict(push([refused], nil), hasWords: false) == .lost)
        #expect(verdict(push([refused], .failed), hasWords: false) == .lostAndTold)
        #expect(verdict(push([], nil), hasWords: false) == .lostInSilence)
        let silent = push([request(at: 10, accepted: false, answered: nil)], nil)
        #expect(verdict(silent, hasWords: false) == .lostInSilence)
        #expect(Evidence(pushes: [silent], hasWords: false, hasFailed: true).verdict(silent, nil) == .lostAndTold)
    }

    @Test func `a second request is without need only if the first answer was there before it`() {
        let again = request(at: 15, answered: 16)
        #expect(verdict(push([request(at: 10, answered: 11), again], .accepted)) == .doubled)
        #expect(verdict(push([request(at: 10, answered: 18), again], .accepted)) == .doubledInDoubt)
        #expect(verdict(push([request(at: 15, answered: 18), again], .accepted)) == .doubled)
        #expect(verdict(push([request(at: 10, answered: nil), again], .accepted)) == .doubledInDoubt)
        #expect(verdict(push([request(at: 10, answered: 18), again], .accepted, at: 14)) == .doubled)
        let thrice = [request(at: 10, answered: nil), again, request(at: 17, answered: 18)]
        #expect(verdict(push(thrice, .accepted)) == .doubled)
    }

    @Test func `an answer is in doubt only shortly before the end of its own connection`() {
        let other = Connection()
        let again = request(at: 15, answered: 16, connection: other)
        func repeated(_ first: ExamRequest, _ cut: Cut, _ victim: Connection) -> Verdict {
            let record = push([first, again], .accepted)
            let cutRequest = request(at: 12, accepted: false, answered: nil, connection: victim)
            let evidence = Evidence(
                pushes: [record, push([cutRequest], .unknown)],
                restart: WallTime(seconds: 12)...WallTime(seconds: 13)
            )
            return evidence.verdict(record, cut)
        }
        let (late, early) = (request(at: 11, answered: 12), request(at: 8, answered: 9))
        #expect(repeated(late, .connection(ofPush: 1), connection) == .doubledInDoubt)
        #expect(repeated(late, .connection(ofPush: 1), other) == .doubled)
        #expect(repeated(early, .connection(ofPush: 1), connection) == .doubled)
        #expect(repeated(late, .service, other) == .doubledInDoubt)
        #expect(repeated(early, .service, other) == .doubled)
        #expect(repeated(request(at: 14, answered: 14), .service, other) == .doubled)
    }

    @Test func `a failure is a false alarm if the answer was there, and the push is late if it came afterwards`() {
        #expect(verdict(push([request(at: 10, answered: 11)], .failed)) == .falseAlarm)
        #expect(verdict(push([request(at: 10, answered: nil)], .failed)) == .once)
        #expect(verdict(push([request(at: 25, answered: 26)], .failed)) == .late)
        #expect(verdict(push([request(at: 10, answered: 11)], .unknown)) == .falseAlarm)
        #expect(verdict(push([request(at: 10, answered: nil)], .unknown)) == .once)
    }

    @Test func `a sender is believed that it cannot know only while an answer is missing`() {
        func severities(_ requests: [ExamRequest], _ cut: Cut? = nil) -> [Severity] {
            Expectation(cut: cut).findings(Evidence(pushes: [push(requests, .unknown)])).map(\.severity)
        }
        let busy = request(at: 10, accepted: false, answered: 10, status: 503)
        let cut = request(at: 9, accepted: false, answered: nil)
        #expect(severities([busy]) == [.warning])
        #expect(severities([cut, busy]) == [.note])
        #expect(severities([]) == [.warning] && severities([], .service) == [.note])
    }

    @Test func `header fields and payloads are compared with the order in every scenario`() {
        func texts(
            _ headers: [String: String],
            _ payload: String = "{}",
            asked: String = "{}",
            hasWords: Bool = true
        ) -> [String] {
            var record = push([request(at: 10, answered: 11, headers: headers, payload: payload)], .accepted)
            let push = ExamPush(number: 0, token: "ab", payload: asked, shape: .plain, expiration: nil)
            record = PushRecord(push: push, requests: record.requests, word: record.word)
            return Expectation().findings(Evidence(pushes: [record], hasWords: hasWords)).map(\.text)
        }
        #expect(texts([:]).isEmpty && texts(["apns-priority": "10", "apns-push-type": "alert"], " { } ").isEmpty)
        #expect(texts(["apns-collapse-id": "a"]) == ["apns-collapse-id is a, and none was asked for"])
        #expect(texts(["apns-priority": "5"]) == ["apns-priority is 5, and 10 was asked for"])
        #expect(texts(["apns-expiration": "0"]) == ["apns-expiration is 0, and none was asked for"])
        let (short, long) = (#"{"aps":{"alert":"a"}}"#, #"{"aps": {"alert": {"body": "a"}}}"#)
        #expect(texts([:], long, asked: short).isEmpty && !texts([:], long).isEmpty)
        #expect(texts([:], #"{"aps":{}}"#) == ["the payload is not what was asked for"])
        #expect(texts(["apns-priority": "5"], hasWords: false).isEmpty)
        let background = push([request(at: 10, answered: 11)], .accepted, PushShape(pushType: "background"))
        let missing = Expectation().findings(Evidence(pushes: [background])).map(\.text)
        #expect(missing == ["apns-push-type is missing, and background was asked for"])
    }

    @Test func `the worst finding decides, and limits count requests, connections and tokens`() {
        let expectation = Expectation(requestsPerPush: 2, connections: 1, extraTokens: 0)
        let thrice = push((0..<3).map { _ in request(at: 10, accepted: false, answered: 10, status: 503) }, .refused)
        let findings = expectation.findings(Evidence(pushes: [thrice]))
        #expect(findings.map(\.severity) == [.failure, .warning])
        #expect(findings.first?.text == "one push was sent 3 times; 2 times are enough")
        let renamed = push([request(at: 1, answered: nil, id: "a"), request(at: 2, answered: 3, id: "b")], .accepted)
        #expect(Expectation().findings(Evidence(pushes: [renamed])).map(\.severity) == [.warning])
        let kept = push([request(at: 1, answered: nil), request(at: 2, answered: 3)], .accepted)
        #expect(Expectation().findings(Evidence(pushes: [kept])).map(\.severity) == [.note])
    }

    @Test func `a status that Herald did not give is a failure`() {
        let refused = request(at: 10, accepted: false, answered: 10, status: 403)
        func findings(_ status: Int?) -> [Severity] {
            var record = push([refused], .refused)
            record.word?.status = status
            return Expectation(told: .note).findings(Evidence(pushes: [record])).map(\.severity)
        }
        #expect(findings(403) == [.note] && findings(nil) == [.note])
        #expect(findings(410) == [.failure, .note])
    }

    @Test func `a sender that must not trust the service sends nothing, and says so`() {
        let expectation = Expectation(isUntrusted: true)
        #expect(expectation.findings(Evidence(pushes: [push([], .failed)])).isEmpty)
        #expect(expectation.findings(Evidence(pushes: [push([], nil)])).map(\.severity) == [.failure])
        #expect(expectation.findings(Evidence(pushes: [push([], .accepted)])).map(\.severity) == [.failure])
        let sent = push([request(at: 1, answered: 2)], .accepted)
        #expect(expectation.findings(Evidence(pushes: [sent])).map(\.severity) == [.failure])
    }
}
