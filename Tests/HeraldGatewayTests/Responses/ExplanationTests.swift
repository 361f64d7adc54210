import HeraldModel
import Testing

@testable import HeraldGateway
@testable import HeraldMailbox

@Suite struct ExplanationTests {
    private func envelope(stored: Bool = true) -> Envelope {
        let now = WallTime(seconds: 1_800_000_000)
        return Envelope(
            Notification(
                id: NotificationID(high: 1, low: 1),
                uniqueID: NotificationID(high: 2, low: 1),
                slot: Slot(device: DeviceNumber(1), app: AppNumber(1)),
                received: now,
                storedUntil: stored ? now + .seconds(60) : nil,
                priority: .immediate,
                pushType: .alert,
                collapseID: nil,
                payload: []
            ),
            generation: 0
        )
    }

    @Test(arguments: JournalState.allCases)
    func `every state has words of its own that fit into a header field`(state: JournalState) {
        let envelope = envelope()
        envelope.note(state)
        let words = Explanation.words(for: envelope, asksForPast: false)
        #expect(!words.isEmpty && words.utf8.count < 400)
        #expect(words.utf8.allSatisfy { (0x20..<0x7F).contains($0) })
    }

    @Test func `a stored notification has its expiry, a held one the next attempt`() {
        let envelope = envelope()
        envelope.note(.storedBudget, next: WallTime(seconds: 1_800_000_030))
        let words = Explanation.words(for: envelope, asksForPast: false)
        #expect(words.contains("held: ") && words.contains("tries again at 2027-01-15T08:00:30"))
        #expect(words.contains("expires at 2027-01-15T08:01:00"))
    }

    @Test func `an expiration in the past is explained, unlike a request for no storage`() {
        let envelope = envelope(stored: false)
        envelope.note(.discardedDeviceOffline)
        #expect(!Explanation.words(for: envelope, asksForPast: false).contains("1970"))
        #expect(Explanation.words(for: envelope, asksForPast: true).contains("seconds since 1970"))
    }
}

@Suite final class SilentRequestTests {
    private let fixture: Fixture

    init() async throws {
        fixture = try await Fixture()
    }

    private func taken(_ changes: [(String, String?)], _ payload: String) throws -> HeraldModel.Notification? {
        let connection = try Connected(fixture)
        try connection.open()
        _ = try connection.ask(try fixture.fields(changes), body: Array(payload.utf8))
        return fixture.post.envelopes.last?.notification
    }

    @Test(arguments: [nil, "10", "5"])
    func `without push type a silent payload is a background notification of priority 5`(priority: String?) throws {
        let changes: [(String, String?)] = [("apns-push-type", nil), ("apns-priority", priority)]
        let taken = try #require(try taken(changes, #"{"aps":{"content-available":1}}"#))
        #expect(taken.pushType == .background && taken.priority == .conserving)
    }

    @Test func `the gateway takes for silent what the check takes for silent`() throws {
        #expect(SilentPayload.all.contains(where: \.silent) && SilentPayload.all.contains { !$0.silent })
        for vector in SilentPayload.all {
            let taken = try #require(try taken([("apns-push-type", nil)], vector.payload), "\(vector.payload)")
            #expect((taken.pushType == .background) == vector.silent, "\(vector.payload)")
            #expect((taken.priority == .conserving) == vector.silent, "\(vector.payload)")
        }
    }

    @Test func `priority 1 stays`() throws {
        let changes: [(String, String?)] = [("apns-push-type", nil), ("apns-priority", "1")]
        #expect(try taken(changes, #"{"aps":{"content-available":1}}"#)?.priority == .low)
    }

    @Test func `a visible payload is an alert, and so is a declared alert`() throws {
        let noticeable = try #require(
            try taken([("apns-push-type", nil)], #"{"aps":{"content-available":1,"alert":"hello"}}"#)
        )
        #expect(noticeable.pushType == .alert && noticeable.priority == .immediate)
        let declared = try taken([("apns-push-type", "alert")], #"{"aps":{"content-available":1}}"#)
        #expect(declared?.pushType == .alert)
    }

    @Test func `too many for one device token get retry-after 1`() throws {
        fixture.post.decide(.refused(.tooManyRequests, since: nil))
        let connection = try Connected(fixture)
        try connection.open()
        let answer = try #require(try connection.ask(try fixture.fields()))
        #expect(answer.status == "429" && answer.fields["retry-after"] == "1")
        #expect(answer.body == #"{"reason":"TooManyRequests"}"#)
    }
}
