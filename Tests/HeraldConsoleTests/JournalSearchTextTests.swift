import HeraldMailbox
import HeraldModel
import Testing

@testable import HeraldConsole

struct JournalSearchTextTests {
    private static let now = WallTime(seconds: 1_763_805_600)

    private func read(_ text: String) throws -> JournalSearchText { try JournalSearchText(text, now: Self.now) }

    @Test func `terms have keys, values and negations`() throws {
        let search = try read(
            #"topic:com.example.app -state:stored provider:K7F2ABCDEF type:voip -priority:5 environment:sandbox device:"my phone""#
        )
        #expect(search.topics.wanted == [try #require(Topic("com.example.app"))])
        #expect(search.states.wanted == nil && search.states.unwanted.contains(.storedDeviceOffline))
        #expect(!search.states.unwanted.contains(.delivered))
        #expect(search.providers.wanted == ["K7F2ABCDEF"] && search.types.wanted == [.voip])
        #expect(search.priorities.unwanted == [.conserving] && search.environment == .sandbox)
        #expect(search.devices.wanted == ["my phone"])
        #expect(try read("") == read("  "))
        #expect(try read("-environment:sandbox").environment == .production)
    }

    @Test func `words are known by their form`() throws {
        let id = NotificationID(high: 1, low: 2)
        let token = String(repeating: "ab", count: 32)
        let search = try read("\(id) \(token) com.example.app kitchen -hall")
        #expect(search.ids.wanted == [id])
        #expect(search.tokens.wanted == [try #require(DeviceToken(token))])
        #expect(search.topics.wanted?.map(\.name) == ["com.example.app"])
        #expect(search.devices.wanted == ["kitchen"] && search.devices.unwanted == ["hall"])
    }

    @Test(arguments: [
        ("delivered", 4), ("Delivered-From-Storage", 2), (#""stored (device offline)""#, 1), ("refused", 5),
        ("discarded", 16),
    ])
    func `a state is the beginning of its words`(text: String, count: Int) throws {
        let states = try #require(try read("state:\(text)").states.wanted)
        #expect(states.count == count)
    }

    @Test func `a reason is an answer, or words of a state`() throws {
        #expect(try read("reason:baddevicetoken").reasons.wanted == [.refusal(.badDeviceToken)])
        let expired = try read("reason:expired").reasons.wanted
        #expect(expired == [.state(.discardedExpired), .state(.discardedExpiredFromStorage)])
        #expect(try read("reason:device-offline").reasons.wanted == [.state(.storedDeviceOffline)])
    }

    @Test(arguments: [
        ("-2h", 1_763_798_400), ("-90s", 1_763_805_510), ("2025-11-22", 1_763_769_600),
        ("2025-11-22T10:00", 1_763_805_600), ("2025-11-22T10:00:05", 1_763_805_605),
        ("2025-11-22T10:00:05.000Z", 1_763_805_605),
    ])
    func `times are relative, or in UTC`(text: String, seconds: Int64) throws {
        #expect(try read("after:\(text)").after == WallTime(seconds: seconds))
        #expect(try read("before:\"\(text)\"").before == WallTime(seconds: seconds))
    }

    @Test(arguments: [
        ("tpoic:x", "the keys are topic:"), ("state:gone", "received, delivered"), ("topic:a..b", "com.example.app"),
        ("type:loud", "alert"), ("priority:7", "10, 5 or 1"), ("id:7", "UUID"),
        ("environment:moon", "production or sandbox"),
        ("environment:sandbox environment:production", "one environment"), ("after:soon", "-2h"),
        ("-after:-2h", "negated"), ("reason:because", "BadDeviceToken"), ("device:", "no value"), (#"x "y"#, "partner"),
        (String(repeating: "a", count: 2001), "longer"), (String(repeating: "a ", count: 33), "terms"),
        ("after:-", "time"),
        ("after:-99999999999999999999h", "time"),
    ])
    func `an error says what is wrong and what is allowed`(text: String, words: String) {
        let error = #expect(throws: AdminError.self) { try read(text) }
        #expect(error?.code == .badRequest && error?.message.contains(words) == true)
    }
}

struct StateGuideTests {
    @Test(arguments: JournalState.allCases)
    func `every state has a sentence, and is known from its line`(state: JournalState) {
        let entry = StateGuide.entry(state)
        #expect(entry.words.hasSuffix("."))
        #expect(entry.hint.isEmpty || entry.hint.hasSuffix("."))
        let line = JournalEntry(
            JournalEvent(
                time: WallTime(seconds: 1),
                id: NotificationID(high: 1, low: 1),
                uniqueID: NotificationID(high: 1, low: 1),
                slot: Slot(device: DeviceNumber(1), app: AppNumber(1)),
                state: state
            ),
            device: nil,
            app: nil
        )
        if state != .refusedByService { #expect(line.journalState == state) }
    }

    @Test(arguments: RefusalReason.allCases)
    func `every refusal has its cause and an advice`(reason: RefusalReason) {
        let entry = StateGuide.entry(reason)
        #expect(entry.words.contains("\(reason.httpStatus) \(reason.rawValue)."))
        #expect(entry.hint.hasSuffix(".") && !entry.hint.contains(".."))
        #expect(StateGuide.entry(reason, explanation: "the cause").hint.hasPrefix("The cause. "))
    }
}
