import Foundation
import HeraldModel
import HeraldProvider
import Testing

@testable import HeraldRelay

@Suite struct DecisionTests {
    @Test func `pauses grow to a limit`() {
        let backOff = RetryBackOff()
        #expect(backOff.pause(after: 1, share: 1) == .seconds(1))
        #expect(backOff.pause(after: 1, share: 0) == .milliseconds(500))
        #expect(backOff.pause(after: 4, share: 1) == .seconds(8))
        #expect(backOff.pause(after: 4000, share: 1) == .seconds(300))
    }

    private func answer(_ status: Int, _ reason: String, timestamp: Int64? = nil) throws -> SendResult {
        let more = timestamp.map { #","timestamp":\#($0)"# } ?? ""
        let body = Array(#"{"reason":"\#(reason)"\#(more)}"#.utf8)
        return .answered(try PushAnswer(status: status, field: { _ in nil }, body: body))
    }

    private func change(_ result: SendResult, attempts: Int = 0, life: Int = 3600) -> RowOutcome.Change {
        RetryRules().change(
            after: result,
            attempts: attempts,
            deadline: Words.now + .seconds(life),
            now: Words.now,
            share: 1
        )
    }

    @Test func `answers become outcomes`() throws {
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
        #expect(
            change(.uncertain(RowError(.timedOut))) == .later(soon, reason: "TimedOut", uncertain: true, counts: true)
        )
        #expect(change(.invalid(RowError(.badCredential))) == .final(.failed, reason: "BadCredential"))
    }

    @Test func `a late row expires`() throws {
        #expect(change(try answer(503, "Shutdown"), attempts: 9, life: 60) == .final(.expired, reason: "Shutdown"))
    }

    @Test func `only status 410 reports a dead token`() throws {
        for (status, reason, isDead) in [
            (410, "Unregistered", true), (410, "ExpiredToken", true), (400, "BadDeviceToken", false),
        ] {
            guard case .answered(.refused(let refusal)) = try answer(status, reason) else { throw CancellationError() }
            #expect(RetryRules.isDeadToken(refusal) == isDead)
        }
    }

    @Test func `a reason is one word`() throws {
        guard case .answered(.refused(let refusal)) = try answer(400, "a b\\u0000\\n';--c") else {
            throw CancellationError()
        }
        #expect(RetryRules.word(for: refusal) == "abc")
    }

    @Test func `many dead tokens open the breaker`() {
        var breaker = DeadTokenBreaker()
        for index in 0..<20 {
            #expect(breaker.note(app: "a", answers: 1, deadTokens: 1, at: Words.now + .seconds(index)).mayMark)
        }
        let last = breaker.note(app: "a", answers: 1, deadTokens: 1, at: Words.now + .seconds(20))
        #expect(!last.mayMark && last.trip?.deadTokens == 21)
        #expect(breaker.trips.map(\.app) == ["a"])
        // It stays on, is told once, and is the app's own.
        let more = breaker.note(app: "a", answers: 1, deadTokens: 1, at: Words.now + .seconds(9000))
        #expect(!more.mayMark && more.trip == nil)
        #expect(breaker.note(app: "b", answers: 1, deadTokens: 1, at: Words.now).mayMark)
    }

    @Test func `a usual share does not open the breaker`() {
        var breaker = DeadTokenBreaker()
        // A fifth is much, but it is what there always is.
        var now = Words.now
        for _ in 0..<200 {
            #expect(breaker.note(app: "a", answers: 10, deadTokens: 1, at: now).mayMark)
            now = now + .seconds(60)
        }
        #expect(breaker.note(app: "a", answers: 300, deadTokens: 75, at: now).mayMark)
        let flood = breaker.note(app: "a", answers: 300, deadTokens: 299, at: now)
        #expect(flood.trip != nil)
    }

    @Test func `a small share of many answers does not open the breaker`() {
        var breaker = DeadTokenBreaker()
        #expect(breaker.note(app: "a", answers: 100_000, deadTokens: 9000, at: Words.now).mayMark)
        var other = DeadTokenBreaker()
        #expect(!other.note(app: "a", answers: 100_000, deadTokens: 11_000, at: Words.now).mayMark)
    }

    @Test func `the breaker of an unreachable service backs off`() {
        var breaker = CircuitBreaker(RetryBackOff())
        let now = ContinuousClock.now
        #expect(breaker.pause(at: now) == nil)
        breaker.failed("Unreachable", at: now, share: 1)
        #expect(breaker.pause(at: now) == .seconds(1))
        // Those that were on their way fail with it, and do not count.
        breaker.failed("Unreachable", at: now, share: 1)
        let later = now + .seconds(1)
        #expect(breaker.pause(at: later) == nil)
        breaker.failed("Unreachable", at: later, share: 1)
        #expect(breaker.pause(at: later) == .seconds(2))
        breaker.succeeded()
        #expect(breaker.pause(at: later) == nil && breaker.reason == nil)
    }

    @Test func `a refused credential opens the breaker of its topic`() throws {
        var breaker = CredentialBreaker(RetryBackOff())
        let (mine, other) = (try #require(Topic("com.example.chat")), try #require(Topic("com.example.mail")))
        let now = ContinuousClock.now
        let later = now + .seconds(1)
        #expect(breaker.admit(mine, at: now) == nil)
        let first = breaker.refused(mine, "InvalidProviderToken", since: Words.now, at: now, share: 1)
        #expect(first.pause == .seconds(1) && first.isNew)
        // Those that were on their way are refused with it, and do not count; another topic goes on.
        #expect(breaker.refused(mine, "InvalidProviderToken", since: Words.now, at: now, share: 1).pause == .seconds(1))
        #expect(breaker.admit(mine, at: now) == .seconds(1) && breaker.admit(other, at: now) == nil)
        // One is tried, and the others wait for it.
        #expect(breaker.admit(mine, at: later) == nil)
        #expect(breaker.admit(mine, at: later) == .seconds(2))
        let second = breaker.refused(mine, "InvalidProviderToken", since: Words.now, at: later, share: 1)
        #expect(second.pause == .seconds(2) && !second.isNew)
        let end = later + second.pause
        // A trial without an answer is followed by another.
        #expect(breaker.admit(mine, at: end) == nil)
        breaker.unanswered(mine, at: end)
        #expect(breaker.admit(mine, at: end + .seconds(2)) == nil)
        let accepted = (breaker.accepted(other), breaker.accepted(mine), breaker.accepted(mine))
        #expect(accepted == (false, true, false))
        #expect(breaker.admit(mine, at: now) == nil && breaker.failures.isEmpty)
    }

    @Test func `the number of topics is bounded`() throws {
        var breaker = CredentialBreaker(RetryBackOff())
        let now = ContinuousClock.now
        for number in 0...CredentialBreaker.maximumTopics + 1 {
            let topic = try #require(Topic("com.example.t\(number)"))
            _ = breaker.refused(topic, "Forbidden", since: Words.now, at: now, share: 1)
            #expect(breaker.admit(topic, at: now) != nil)
        }
        #expect(breaker.failures.count == CredentialBreaker.maximumTopics + 1)
        #expect(breaker.accepted(try #require(Topic("com.example.t0"))))
        #expect(breaker.failures.count == CredentialBreaker.maximumTopics - 1)
    }

    @Test(arguments: [
        (403, "InvalidProviderToken", true, true), (403, "ExpiredProviderToken", true, true),
        (403, "BadCertificateEnvironment", true, true), (403, "BadEnvironmentKeyInToken", false, true),
        (403, "Novelty", false, true), (400, "TopicDisallowed", true, true), (400, "TopicDisallowed", false, false),
        (400, "BadDeviceToken", true, false), (400, "DeviceTokenNotForTopic", true, false),
        (400, "MissingTopic", true, false), (410, "Unregistered", true, false), (429, "TooManyRequests", true, false),
        (429, "TooManyProviderTokenUpdates", true, false), (503, "Shutdown", true, false),
    ])
    func `refusals concern the credential or the row`(
        _ status: Int,
        _ reason: String,
        _ isNamed: Bool,
        isCredential: Bool
    ) throws {
        guard case .answered(.refused(let refusal)) = try answer(status, reason) else { throw CancellationError() }
        #expect(RetryRules.isAboutCredential(refusal, isNamed: isNamed) == isCredential)
    }

    @Test func `the database decides which breakers are open`() {
        var breaker = DeadTokenBreaker()
        let trip = DeadTokenBreaker.Trip(app: "a (production)", deadTokens: 21, answers: 21, since: Words.now)
        #expect(trip.topic == "a")
        // Somebody else put it on, or this relay before it was started again.
        #expect(breaker.reconcile([trip], known: []).opened == [trip])
        #expect(!breaker.note(app: trip.app, answers: 1, deadTokens: 1, at: Words.now).mayMark)
        #expect(breaker.reconcile([trip], known: breaker.stored).opened.isEmpty && breaker.trips == [trip])
        // An operator took it off: what put it on is forgotten.
        #expect(breaker.reconcile([], known: breaker.stored).reset == [trip])
        #expect(breaker.trips.isEmpty && breaker.note(app: trip.app, answers: 1, deadTokens: 1, at: Words.now).mayMark)
        // One that is not written yet is not taken for one that was taken off.
        let own = breaker.note(app: "b", answers: 30, deadTokens: 30, at: Words.now).trip
        #expect(
            breaker.unstored == [own] && breaker.reconcile([], known: breaker.stored).reset.isEmpty
                && breaker.trips == [own]
        )
        if let own { breaker.didStore(own) }
        #expect(breaker.unstored.isEmpty && breaker.stored == [own])
    }

    @Test func `few timeouts do not open the breaker`() {
        var breaker = CircuitBreaker(RetryBackOff())
        let now = ContinuousClock.now
        for _ in 1..<CircuitBreaker.timeoutThreshold { breaker.timedOut("TimedOut", at: now, share: 1) }
        #expect(breaker.pause(at: now) == nil)
        breaker.timedOut("TimedOut", at: now, share: 1)
        #expect(breaker.pause(at: now) != nil)
    }

    @Test(arguments: [
        (["de-CH", "fr"], "de"), (["pt-BR"], "pt-br"), (["zh-Hant-TW"], "zh-hant"), (["it"], ""), ([], ""),
        (["de-x-a"], "de"),
    ])
    func `languages are looked up`(_ preferred: [String], _ expected: String) {
        let texts = ["": "", "de": "de", "fr": "fr", "pt_BR": "pt-br", "zh-Hant": "zh-hant"]
        #expect(LanguageList.pick(preferred, from: texts) == expected)
    }

    @Test func `language lists are read in either form`() {
        #expect(LanguageList.read("de-CH, fr") == ["de-CH", "fr"])
        #expect(LanguageList.read(#"["de-CH","fr"]"#) == ["de-CH", "fr"])
        #expect(LanguageList.read("") == [])
    }

    @Test func `templates are filled`() throws {
        let parameters = try TemplateText.parameters(Array(#"{"name":"A \"B\"\n","count":3,"on":true}"#.utf8))
        let template = #"{"aps":{"alert":"{{name}} wrote {{ count }}","badge":"{{count}}"},"on":"{{on}}","x":{"y":{}}}"#
        let filled = String(decoding: try TemplateText.fill(template, parameters), as: UTF8.self)
        #expect(
            filled == #"{"aps":{"alert":"A \"B\"\n wrote 3","badge":3},"on":true,"x":{"y":{}}}"#
        )
        #expect(throws: TemplateText.Failure.missingParameter("other")) {
            try TemplateText.fill(#""{{other}}""#, parameters)
        }
        #expect(throws: TemplateText.Failure.badTemplate) { try TemplateText.fill(#"{"badge":{{count}}}"#, parameters) }
        #expect(throws: TemplateText.Failure.badParameters) { try TemplateText.parameters(Array("[1]".utf8)) }
        #expect(throws: TemplateText.Failure.badParameters) { try TemplateText.parameters(Array(#"{"a":{}}"#.utf8)) }
    }

    @Test(arguments: [
        // Numbers keep their digits, in the template, whole and within a text.
        (
            #"[9007199254740993,1.10,1e400,-0,"{{big}}","{{huge}}"]"#,
            "[9007199254740993,1.10,1e400,-0,18446744073709551615,1e400]"
        ),
        (#""{{big}}/{{ price }}/{{huge}}/{{zero}}""#, #""18446744073709551615/1.10/1e400/-0""#),
        // A parameter's text is text, whatever stands before the quotation marks.
        (#"["\\","{{text}}","\\\"{{text}}\"","\\{{text}}"]"#, #"["\\","\"\\","\\\"\"\\\"","\\\"\\"]"#),
        // Braces around anything but a name are text.
        (#""{{}} {{a b}} {{{zero}} }} {{""#, #""{{}} {{a b}} {{{zero}} }} {{""#),
        (#""{{{{zero}}}}""#, #""{{-0}}""#),
        // The name of a member is text, too, and a name may be escaped.
        (
            #"{"{{big}}":"{{nothing}}","{{on}}":"\u007b{\u0062ig}}"}"#,
            #"{"18446744073709551615":null,"true":18446744073709551615}"#
        ),
        // A combining character joins neither braces nor names.
        ("\"{{zero}}\u{301} \u{301}{{zero}}\"", "\"-0\u{301} \u{301}-0\""),
    ])
    func `a template is filled string by string`(_ template: String, _ expected: String) throws {
        let values =
            #"{"big":18446744073709551615,"price":1.10,"huge":1e400,"zero":-0,"text":"\"\\","nothing":null,"on":true}"#
        let filled = try TemplateText.fill(template, try TemplateText.parameters(Array(values.utf8)))
        #expect(filled == Array(expected.utf8), "\(String(decoding: filled, as: UTF8.self))")
    }

    @Test(arguments: [
        ("1772366400", Int64(1_772_366_400_000)), ("2026-03-01 12:00:00", 1_772_366_400_000),
        ("1772366400.25", 1_772_366_400_250),
        ("2026-03-01T12:00:00Z", 1_772_366_400_000), ("2026-03-01 12:00:00.5+00", 1_772_366_400_500),
        ("2026-03-01", 1_772_323_200_000), ("2026-03-01 12:00", 1_772_366_400_000),
        ("2026-03-01T14:00:00+02:00", 1_772_366_400_000), ("2026-03-01 06:30:00.25-0530", 1_772_366_400_250),
        ("2026-03-01 14:00+02", 1_772_366_400_000), ("2026-03-01 12:00:00 UTC", 1_772_366_400_000),
        ("2026-03-01 12:00:00 +00:00", 1_772_366_400_000), ("1772366400.000", 1_772_366_400_000),
    ])
    func `moments are read as they are written`(_ text: String, _ milliseconds: Int64) {
        #expect(StoredMoment.read(text)?.milliseconds == milliseconds)
        #expect(StoredMoment.read(SQLValue.text(text))?.milliseconds == milliseconds)
    }

    @Test(arguments: [
        "", "soon", "2026-13-01", "nan", "1e99", "2026-03-01 25:00:00", "\u{0}", "2026-03-01X12:00:00", "0x7fffffff",
        "inf",
        "1772366400.2.5", "1772366400.", "1772366400000", "-1772366400", "300", "9223372036854775807",
        "99999999999999999999",
        "2026-03-01 12:00:00+2", "2026-03-01 12:00:00 CET", "2026-03-01 12:00:00+02:00:00", "2026-03-01 +02:00",
        "infinity",
        "2026-03-01T12:00:00\u{301}", "٢٠٢٦-03-01 12:00:00", "01/03/2026 12:00:00",
    ])
    func `invalid times are refused`(_ text: String) {
        #expect(StoredMoment.read(text) == nil && StoredMoment.read(SQLValue.text(text)) == nil)
    }

    @Test func `addresses hide their password`() throws {
        #expect(
            "\(try DatabaseAddress("postgresql://ann:secret@db:5432/chat?sslmode=require"))"
                == "postgresql://db:5432/chat"
        )
        let shown = [
            "postgresql://ann:se?cret@db/chat": "postgresql://…",
            "postgresql://db/chat?password=se@cret": "postgresql://…",
            "postgresql://db/chat?password=secret": "postgresql://db/chat",
            "postgresql://ann@/chat?host=/run": "postgresql:///chat",
        ]
        for (text, words) in shown { #expect("\(try DatabaseAddress(text))" == words) }
        #expect(try DatabaseAddress("sqlite:///var/queue.db") == .sqlite(path: "/var/queue.db"))
        for text in [
            "sqlite://queue.db", "sqlite:///", "mysql://x", "/var/queue.db", "", "sqlite:///q.db?token=secret",
            "sqlite:///q.db#secret", "postgresql://db/chat#secret", "postgresql://db#secret/chat",
        ] {
            #expect(throws: RelayStoreError.self) { try DatabaseAddress(text) }
        }
    }

    /// libpq takes what follows the sign for a host, a port or a parameter, and its errors quote that.
    @Test(arguments: [
        "se/cret@", "12/cret@", "se@cret@", "se@/cret@", "se/a?cret@", "12/a?sslmode=cret@", "se%zzcret@",
    ])
    func `a password with unescaped signs is refused unseen`(_ password: String) throws {
        do {
            let address = try DatabaseAddress("postgresql://ann:\(password)db/chat")
            Issue.record("accepted: \(address)")
        } catch let error as RelayStoreError {
            #expect(error.code == .unusable && error.message.contains("%40 for @"))
            #expect(!error.message.contains("cret"))
        }
    }

    @Test func `journals are read`() throws {
        func standing(_ states: String...) throws -> JournalResult {
            let lines = states.map { words in
                let parts = words.split(separator: "/")
                let reason = parts.count > 1 ? #","reason":"\#(parts[1])""# : ""
                return #"{"id":"x","state":"\#(parts[0])","time":"x"\#(reason)}"#
            }
            .joined(separator: ",")
            return JournalResult(try JSONDecoder().decode([JournalLine].self, from: Data("[\(lines)]".utf8)))
        }
        #expect(try standing() == .notAccepted)
        #expect(try standing("received") == .pending)
        #expect(try standing("received", "stored/device offline") == .accepted)
        #expect(try standing("received", "refused/drill") == .notAccepted)
        #expect(try standing("received", "refused/drill", "received", "lost/drill") == .notAccepted)
        #expect(try standing("received", "lost/drill", "received") == .pending)
        #expect(try standing("received", "refused/drill", "received", "delivered") == .accepted)
        #expect(try standing("received", "answer withheld/drill", "delivered") == .accepted)
        #expect(try standing("refused/ServiceUnavailable") == .notAccepted)
        #expect(try standing("received", "refused/ServiceUnavailable") == .pending)
    }
}
