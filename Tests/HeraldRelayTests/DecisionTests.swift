import Foundation
import HeraldModel
import HeraldProvider
import Testing

@testable import HeraldRelay

@Suite struct DecisionTests {
    @Test func pausesGrowToACap() {
        let policy = RetryPolicy()
        #expect(policy.pause(after: 1, share: 1) == .seconds(1))
        #expect(policy.pause(after: 1, share: 0) == .milliseconds(500))
        #expect(policy.pause(after: 4, share: 1) == .seconds(8))
        #expect(policy.pause(after: 4000, share: 1) == .seconds(300))
    }

    private func answer(_ status: Int, _ reason: String, timestamp: Int64? = nil) throws -> SendResult {
        let more = timestamp.map { #","timestamp":\#($0)"# } ?? ""
        let body = Array(#"{"reason":"\#(reason)"\#(more)}"#.utf8)
        return .answered(try PushAnswer(status: status, field: { _ in nil }, body: body))
    }

    private func change(_ result: SendResult, attempts: Int = 0, life: Int = 3600) -> RowOutcome.Change {
        AnswerRules().change(
            after: result,
            attempts: attempts,
            deadline: Words.now + .seconds(life),
            now: Words.now,
            share: 1
        )
    }

    @Test func answersBecomeOutcomes() throws {
        let accepted = try PushAnswer(status: 200, field: { $0 == "apns-id" ? "x" : nil }, body: [])
        #expect(change(.answered(accepted)) == .final(.sent, reason: nil))
        #expect(change(try answer(400, "BadDeviceToken")) == .final(.refused, reason: "BadDeviceToken"))
        #expect(change(try answer(410, "Unregistered")) == .final(.refused, reason: "Unregistered"))
        #expect(change(try answer(403, "InvalidProviderToken")) == .final(.refused, reason: "InvalidProviderToken"))
        let soon = Words.now + .seconds(1)
        #expect(
            change(try answer(429, "TooManyRequests"))
                == .later(soon, reason: "TooManyRequests", uncertain: false, counts: true)
        )
        #expect(change(try answer(503, "Novelty")) == .later(soon, reason: "Novelty", uncertain: false, counts: true))
        #expect(change(try answer(418, "Novelty")) == .final(.refused, reason: "Novelty"))
        #expect(change(.uncertain("TimedOut")) == .later(soon, reason: "TimedOut", uncertain: true, counts: true))
        #expect(change(.impossible("BadCredential")) == .final(.failed, reason: "BadCredential"))
    }

    @Test func whatComesTooLateIsNotSent() throws {
        #expect(change(try answer(503, "Shutdown"), attempts: 9, life: 60) == .final(.expired, reason: "Shutdown"))
    }

    @Test func onlyGoneIsDeath() throws {
        for (status, reason, isDeath) in [
            (410, "Unregistered", true), (410, "ExpiredToken", true), (400, "BadDeviceToken", false),
        ] {
            guard case .answered(.refused(let refusal)) = try answer(status, reason) else { throw CancellationError() }
            #expect(AnswerRules.isDeath(refusal) == isDeath)
        }
    }

    @Test func aReasonIsOneWord() throws {
        guard case .answered(.refused(let refusal)) = try answer(400, "a b\\u0000\\n';--c") else {
            throw CancellationError()
        }
        #expect(AnswerRules.word(for: refusal) == "abc")
    }

    @Test func manyDeathsPutTheBrakeOn() {
        var brake = DeathBrake()
        for index in 0..<20 {
            #expect(brake.note(app: "a", answers: 1, deaths: 1, at: Words.now + .seconds(index)).mayMark)
        }
        let last = brake.note(app: "a", answers: 1, deaths: 1, at: Words.now + .seconds(20))
        #expect(!last.mayMark && last.alarm?.deaths == 21)
        #expect(brake.alarms.map(\.app) == ["a"])
        // It stays on, is told once, and is the app's own.
        let more = brake.note(app: "a", answers: 1, deaths: 1, at: Words.now + .seconds(9000))
        #expect(!more.mayMark && more.alarm == nil)
        #expect(brake.note(app: "b", answers: 1, deaths: 1, at: Words.now).mayMark)
    }

    @Test func aShareThatIsUsualIsNot() {
        var brake = DeathBrake()
        // A fifth is much, but it is what there always is.
        var now = Words.now
        for _ in 0..<200 {
            #expect(brake.note(app: "a", answers: 10, deaths: 1, at: now).mayMark)
            now = now + .seconds(60)
        }
        #expect(brake.note(app: "a", answers: 300, deaths: 75, at: now).mayMark)
        let flood = brake.note(app: "a", answers: 300, deaths: 299, at: now)
        #expect(flood.alarm != nil)
    }

    @Test func ofABigListAFewAreLetThrough() {
        var brake = DeathBrake()
        #expect(brake.note(app: "a", answers: 100_000, deaths: 9000, at: Words.now).mayMark)
        var other = DeathBrake()
        #expect(!other.note(app: "a", answers: 100_000, deaths: 11_000, at: Words.now).mayMark)
    }

    @Test func aServiceThatIsAwayRestsEverLonger() {
        var rest = RouteRest(RetryPolicy())
        #expect(rest.wait(at: Words.now) == nil)
        rest.failed("Unreachable", at: Words.now, share: 1)
        #expect(rest.wait(at: Words.now) == Words.now + .seconds(1))
        // Those that were on their way fail with it, and do not count.
        rest.failed("Unreachable", at: Words.now, share: 1)
        let later = Words.now + .seconds(1)
        #expect(rest.wait(at: later) == nil)
        rest.failed("Unreachable", at: later, share: 1)
        #expect(rest.wait(at: later) == later + .seconds(2))
        rest.answered()
        #expect(rest.wait(at: later) == nil && rest.reason == nil)
    }

    @Test func aCredentialThatIsNotAcceptedRestsItsTopic() throws {
        var rest = CredentialRest(RetryPolicy())
        let (mine, other) = (try #require(Topic("com.example.chat")), try #require(Topic("com.example.mail")))
        let later = Words.now + .seconds(1)
        #expect(rest.admit(mine, at: Words.now) == nil)
        let first = rest.refused(mine, "InvalidProviderToken", at: Words.now, share: 1)
        #expect(first.until == later && first.isNew)
        // Those that were on their way are refused with it, and do not count; another topic goes on.
        #expect(rest.refused(mine, "InvalidProviderToken", at: Words.now, share: 1).until == later)
        #expect(rest.admit(mine, at: Words.now) == later && rest.admit(other, at: Words.now) == nil)
        // One is tried, and the others wait for it.
        #expect(rest.admit(mine, at: later) == nil)
        #expect(rest.admit(mine, at: later) == later + .seconds(2))
        let second = rest.refused(mine, "InvalidProviderToken", at: later, share: 1)
        #expect(second.until == later + .seconds(2) && !second.isNew)
        // A trial without an answer is followed by another.
        #expect(rest.admit(mine, at: second.until) == nil)
        rest.unanswered(mine, at: second.until)
        #expect(rest.admit(mine, at: second.until + .seconds(2)) == nil)
        let accepted = (rest.accepted(other), rest.accepted(mine), rest.accepted(mine))
        #expect(accepted == (false, true, false))
        #expect(rest.admit(mine, at: Words.now) == nil && rest.troubles.isEmpty)
    }

    @Test func noMoreTopicsAreToldApartThanItHolds() throws {
        var rest = CredentialRest(RetryPolicy())
        for number in 0...CredentialRest.maximumTopics + 1 {
            let topic = try #require(Topic("com.example.t\(number)"))
            _ = rest.refused(topic, "Forbidden", at: Words.now, share: 1)
            #expect(rest.admit(topic, at: Words.now) != nil)
        }
        #expect(rest.troubles.count == CredentialRest.maximumTopics + 1)
        #expect(rest.accepted(try #require(Topic("com.example.t0"))))
        #expect(rest.troubles.count == CredentialRest.maximumTopics - 1)
    }

    @Test(arguments: [
        (403, "InvalidProviderToken", true, true), (403, "ExpiredProviderToken", true, true),
        (403, "BadCertificateEnvironment", true, true), (403, "BadEnvironmentKeyInToken", false, true),
        (403, "Novelty", false, true), (400, "TopicDisallowed", true, true), (400, "TopicDisallowed", false, false),
        (400, "BadDeviceToken", true, false), (400, "DeviceTokenNotForTopic", true, false),
        (400, "MissingTopic", true, false), (410, "Unregistered", true, false), (429, "TooManyRequests", true, false),
        (429, "TooManyProviderTokenUpdates", true, false), (503, "Shutdown", true, false),
    ])
    func whoseFaultARefusalIs(_ status: Int, _ reason: String, _ isNamed: Bool, _ isCredential: Bool) throws {
        guard case .answered(.refused(let refusal)) = try answer(status, reason) else { throw CancellationError() }
        #expect(AnswerRules.isAboutCredential(refusal, isNamed: isNamed) == isCredential)
    }

    @Test func aBrakeIsWhatTheDatabaseSays() {
        var brake = DeathBrake()
        let alarm = DeathBrake.Alarm(app: "a (production)", deaths: 21, answers: 21, since: Words.now)
        #expect(alarm.topic == "a")
        // Somebody else put it on, or this relay before it was started again.
        #expect(brake.follow([alarm], known: []).on == [alarm])
        #expect(!brake.note(app: alarm.app, answers: 1, deaths: 1, at: Words.now).mayMark)
        #expect(brake.follow([alarm], known: brake.kept).on.isEmpty && brake.alarms == [alarm])
        // An operator took it off: what put it on is forgotten.
        #expect(brake.follow([], known: brake.kept).off == [alarm])
        #expect(brake.alarms.isEmpty && brake.note(app: alarm.app, answers: 1, deaths: 1, at: Words.now).mayMark)
        // One that is not written yet is not taken for one that was taken off.
        let own = brake.note(app: "b", answers: 30, deaths: 30, at: Words.now).alarm
        #expect(brake.unkept == [own] && brake.follow([], known: brake.kept).off.isEmpty && brake.alarms == [own])
        if let own { brake.isKept(own) }
        #expect(brake.unkept.isEmpty && brake.kept == [own])
    }

    @Test func oneSilenceIsNotTheService() {
        var rest = RouteRest(RetryPolicy())
        for _ in 1..<RouteRest.patience { rest.silent("TimedOut", at: Words.now, share: 1) }
        #expect(rest.wait(at: Words.now) == nil)
        rest.silent("TimedOut", at: Words.now, share: 1)
        #expect(rest.wait(at: Words.now) != nil)
    }

    @Test(arguments: [
        (["de-CH", "fr"], "de"), (["pt-BR"], "pt-br"), (["zh-Hant-TW"], "zh-hant"), (["it"], ""), ([], ""),
        (["de-x-a"], "de"),
    ])
    func languagesAreLookedUp(_ preferred: [String], _ expected: String) {
        let texts = ["": "", "de": "de", "fr": "fr", "pt_BR": "pt-br", "zh-Hant": "zh-hant"]
        #expect(LanguageList.pick(preferred, from: texts) == expected)
    }

    @Test func languageListsAreReadInEitherForm() {
        #expect(LanguageList.read("de-CH, fr") == ["de-CH", "fr"])
        #expect(LanguageList.read(#"["de-CH","fr"]"#) == ["de-CH", "fr"])
        #expect(LanguageList.read("") == [])
    }

    @Test func templatesAreFilled() throws {
        let parameters = try TemplateText.parameters(Array(#"{"name":"A \"B\"\n","count":3,"on":true}"#.utf8))
        let template = #"{"aps":{"alert":"{{name}} wrote {{ count }}","badge":"{{count}}"},"on":"{{on}}","x":{"y":{}}}"#
        let filled = String(decoding: try TemplateText.fill(template, parameters), as: UTF8.self)
        #expect(
            filled == #"{"aps":{"alert":"A \"B\"\u000a wrote 3","badge":3},"on":true,"x":{"y":{}}}"#
        )
        #expect(throws: TemplateText.Fault.missingParameter) { try TemplateText.fill("{{other}}", parameters) }
        #expect(throws: TemplateText.Fault.badParameters) { try TemplateText.parameters(Array("[1]".utf8)) }
        #expect(throws: TemplateText.Fault.badParameters) { try TemplateText.parameters(Array(#"{"a":{}}"#.utf8)) }
    }

    @Test(arguments: [
        ("1772366400", Int64(1_772_366_400_000)), ("2026-03-01 12:00:00", 1_772_366_400_000),
        ("1772366400.25", 1_772_366_400_250),
        ("2026-03-01T12:00:00Z", 1_772_366_400_000), ("2026-03-01 12:00:00.5+00", 1_772_366_400_500),
        ("2026-03-01", 1_772_323_200_000), ("2026-03-01 12:00", 1_772_366_400_000),
    ])
    func momentsAreReadAsTheyAreWritten(_ text: String, _ milliseconds: Int64) {
        #expect(StoredMoment.read(text)?.milliseconds == milliseconds)
    }

    @Test(arguments: ["", "soon", "2026-13-01", "nan", "1e99", "2026-03-01 25:00:00", "\u{0}", "2026-03-01X12:00:00"])
    func whatIsNoMomentIsNone(_ text: String) {
        #expect(StoredMoment.read(text) == nil)
    }

    @Test func addressesHideTheirPassword() throws {
        #expect(
            "\(try DatabaseAddress("postgresql://ann:secret@db:5432/chat?sslmode=require"))"
                == "postgresql://db:5432/chat"
        )
        #expect(try DatabaseAddress("sqlite:///var/queue.db") == .sqlite(path: "/var/queue.db"))
        for text in ["sqlite://queue.db", "sqlite:///", "mysql://x", "/var/queue.db", ""] {
            #expect(throws: RelayStoreError.self) { try DatabaseAddress(text) }
        }
    }

    @Test func journalsAreRead() throws {
        func standing(_ states: String...) throws -> JournalStanding {
            let lines = states.map { words in
                let parts = words.split(separator: "/")
                let reason = parts.count > 1 ? #","reason":"\#(parts[1])""# : ""
                return #"{"id":"x","state":"\#(parts[0])","time":"x"\#(reason)}"#
            }
            .joined(separator: ",")
            return JournalStanding(try JSONDecoder().decode([JournalLine].self, from: Data("[\(lines)]".utf8)))
        }
        #expect(try standing() == .notTaken)
        #expect(try standing("received") == .underWay)
        #expect(try standing("received", "stored/device offline") == .accepted)
        #expect(try standing("received", "refused/drill") == .notTaken)
        #expect(try standing("received", "refused/drill", "received", "lost/drill") == .notTaken)
        #expect(try standing("received", "lost/drill", "received") == .underWay)
        #expect(try standing("received", "refused/drill", "received", "delivered") == .accepted)
        #expect(try standing("received", "answer withheld/drill", "delivered") == .accepted)
    }
}
