import Foundation
import HeraldDevice
import HeraldJSON
import HeraldModel
import Testing

@testable import HeraldPhone

/// Local notifications: when they are shown, and what a restart, a moved clock and another time zone change.
@Suite struct LocalNotificationTests {
    private func payload(_ alert: String) -> JSON {
        .object(["aps": .object(["alert": .string(alert), "badge": .number(1)]), "n": .number(7)])
    }

    private func schedule(_ kit: inout PhoneKit, _ id: String, _ trigger: LocalNotification.Trigger) throws {
        try kit.does(.schedule(PhoneKit.topic, LocalNotification(id: id, payload: payload(id), trigger: trigger)))
    }

    private func rule(_ text: String) throws -> LocalNotification.Trigger { .every(try #require(CalendarRule(text))) }
    private func moment(_ text: String) throws -> LocalNotification.Trigger { .at(try #require(CalendarMoment(text))) }

    private func set(_ kit: inout PhoneKit, clock: Double? = nil, zone: String? = nil) throws -> [DisplayRecord] {
        var switches = PhoneSwitches()
        switches.clock = clock
        switches.timeZone = zone
        // The driver adds what the clock is ahead.
        let before = kit.phone.state.clockAhead
        let records = records(try kit.does(.set(switches)))
        kit.now = kit.now + .seconds(kit.phone.state.clockAhead - before)
        return records
    }

    private func tick(_ kit: inout PhoneKit, after time: Duration = .zero) -> [DisplayRecord] {
        kit.now = kit.now + time
        return kit.phone.hasToTick(kit.now) ? records(kit.phone.tick(kit.now)) : []
    }

    private func records(_ effects: [PhoneEffect]) -> [DisplayRecord] {
        effects.compactMap { if case .record(let record) = $0 { record } else { nil } }
    }

    private func pending(_ kit: PhoneKit) -> [String] { kit.app?.pending.map(\.id) ?? [] }

    @Test func `it is shown once when it is due, and the app hears of its button`() throws {
        var kit = try PhoneKit()
        let content = JSON.object([
            "aps": .object([
                "alert": .object([
                    "loc-key": .string("GAME_PLAY_REQUEST_FORMAT"),
                    "loc-args": .array([.string("Jenna"), .string("Frank")]),
                ]),
                "category": .string("INVITE"), "sound": .string("default"), "badge": .number(3),
                "thread-id": .string("t"),
            ])
        ])
        try kit.does(
            .schedule(PhoneKit.topic, LocalNotification(id: "invite", payload: content, trigger: .after(.seconds(600))))
        )
        #expect(kit.app?.pending.map(\.next) == [kit.now.unixSeconds + 600] && tick(&kit, after: .seconds(599)).isEmpty)
        let record = try #require(tick(&kit, after: .seconds(1)).first)
        #expect(record.local == "invite" && record.shown && record.sound == "default" && record.badge.after == 3)
        #expect(record.body == "Jenna and Frank have invited you to play Monopoly" && record.thread == "t")
        #expect(pending(kit).isEmpty && tick(&kit, after: .seconds(600)).isEmpty)
        let shown = try #require(kit.newest)
        #expect(
            shown.local == "invite" && shown.apnsID == nil && shown.actions.map(\.identifier) == ["accept", "reply"]
        )
        let effects = try kit.does(.act(id: shown.id, action: "accept", text: nil))
        #expect(
            effects.contains { effect in
                guard case .notifyApp(_, .notification(let heard)) = effect else { return false }
                return heard.cause == .action && heard.arrival.local == "invite" && heard.action == "accept"
            }
        )
        #expect(effects.contains { if case .amend(record.id, .responded) = $0 { true } else { false } })
    }

    @Test func `it is shown without a network and for an ended app but only as the user permits`() throws {
        var kit = try PhoneKit(allow: [.badge])
        try schedule(&kit, "a", .after(.seconds(60)))
        #expect(tick(&kit, after: .seconds(60)).first?.because.contains("the user switched alerts off") == true)
        try kit.does(.permit(PhoneKit.topic, [.alert]))
        try kit.does(.end(PhoneKit.topic))
        var off = PhoneSwitches()
        off.network = false
        try kit.does(.set(off))
        try schedule(&kit, "b", .after(.seconds(60)))
        let record = tick(&kit, after: .seconds(60)).first
        #expect(record?.shown == true && record?.state == .endedByUser)
        try kit.does(.open(PhoneKit.topic))
        try schedule(&kit, "c", .after(.seconds(60)))
        #expect(tick(&kit, after: .seconds(60)).first?.deliveredToApp == true)
        #expect(kit.app?.received?.local == "c" && kit.app?.received?.payload?.members?["n"] == .number(7))
    }

    @Test func `it replaces by its identifier and is cancelled`() throws {
        var kit = try PhoneKit()
        try schedule(&kit, "a", .after(.seconds(60)))
        try schedule(&kit, "b", .after(.seconds(120)))
        try schedule(&kit, "a", .after(.seconds(180)))
        #expect(pending(kit) == ["b", "a"])
        try kit.does(.cancel(PhoneKit.topic, id: "b"))
        #expect(pending(kit) == ["a"])
        #expect(throws: DeviceError.self) { try kit.does(.cancel(PhoneKit.topic, id: "b")) }
        // On the screen too, the newer one replaces the older one.
        let first = try #require(tick(&kit, after: .seconds(180)).first)
        try schedule(&kit, "a", .after(.seconds(60)))
        let second = kit.phone.tick(kit.now + .seconds(60))
        #expect(second.contains(.amend(first.id, .replaced(by: "a"))) && kit.snapshot.notifications.count == 1)
        try schedule(&kit, "c", .after(.seconds(60)))
        try kit.does(.cancel(PhoneKit.topic, id: nil))
        #expect(pending(kit).isEmpty)
        try schedule(&kit, "d", .after(.seconds(60)))
        try kit.does(.remove(PhoneKit.topic))
        #expect(kit.phone.state.pending.all.isEmpty && tick(&kit, after: .seconds(60)).isEmpty)
    }

    @Test func `the sixty-fifth is refused, and so is what cannot be shown`() throws {
        var kit = try PhoneKit()
        for number in 1...64 { try schedule(&kit, "\(number)", .after(.seconds(60))) }
        #expect(throws: DeviceError.self) { try schedule(&kit, "65", .after(.seconds(60))) }
        try schedule(&kit, "64", .after(.seconds(30)))
        try kit.does(.cancel(PhoneKit.topic, id: nil))
        for (id, content) in [
            ("", #"{"aps":{"alert":"a"}}"#), (String(repeating: "x", count: 65), #"{"aps":{"alert":"a"}}"#),
            ("a", "{}"), ("a", #"{"aps":{"alert":null}}"#), ("a", #"{"aps":{"alert":"a","content-available":1}}"#),
            ("a", #"{"aps":{"alert":"\#(String(repeating: "x", count: 4096))"}}"#),
        ] {
            let payload = try JSON.decode(JSON.self, from: Array(content.utf8))
            let notification = LocalNotification(id: id, payload: payload, trigger: .after(.seconds(60)))
            #expect(throws: DeviceError.self) { try kit.does(.schedule(PhoneKit.topic, notification)) }
        }
        #expect(throws: DeviceError.self) { try schedule(&kit, "a", .after(.zero)) }
        _ = try set(&kit, zone: "Asia/Tokyo")
        let past = try #require(throws: DeviceError.self) { try schedule(&kit, "a", moment("2026-03-01T20:59")) }
        #expect(past.message == "its time is past: the device's clock shows 2026-03-01T21:00:00 (Asia/Tokyo)")
        #expect(throws: DeviceError.self) { try kit.does(.cancel(PhoneKit.other, id: nil)) }
        #expect(pending(kit).isEmpty)
    }

    @Test func `what was missed is shown once at the start and a repeating one goes on`() throws {
        var kit = try PhoneKit()
        try schedule(&kit, "once", .after(.seconds(60)))
        try schedule(&kit, "quarter", rule("15m"))
        try schedule(&kit, "noon", rule("day 12:00"))
        // The device is off for three days.
        kit.now = kit.now + .seconds(3 * 86_400 + 60)
        #expect(records(try kit.restart()).compactMap(\.local) == ["once", "quarter", "noon"])
        #expect(records(try kit.restart()).isEmpty && pending(kit) == ["quarter", "noon"])
        #expect(kit.app?.pending.map(\.next) == [kit.now.unixSeconds - 60 + 900, kit.now.unixSeconds - 60 + 86_400])
        #expect(tick(&kit, after: .seconds(840)).compactMap(\.local) == ["quarter"])
    }

    @Test func `the record of one occasion is the same after a crash`() throws {
        var kit = try PhoneKit()
        try schedule(&kit, "a", .after(.seconds(60)))
        var crashed = kit
        let first = tick(&kit, after: .seconds(61))
        // Killed after the record and before the state: it is shown at the next start, in place of the lost one.
        crashed.now = crashed.now + .seconds(90)
        let again = records(try crashed.restart())
        #expect(first.map(\.id) == again.map(\.id) && again.first?.due == first.first?.due)
    }

    @Test func `a clock that is moved ahead lets time pass, and back leaves what remains`() throws {
        var kit = try PhoneKit()
        try schedule(&kit, "timer", .after(.seconds(600)))
        try schedule(&kit, "noon", rule("day 12:30"))
        #expect(try set(&kit, clock: 599).isEmpty)
        #expect(try set(&kit, clock: 600).compactMap(\.local) == ["timer"])
        try schedule(&kit, "timer", .after(.seconds(600)))
        _ = try set(&kit, clock: 0)
        #expect(kit.app?.pending.map(\.next) == [kit.now.unixSeconds + 600, kit.now.unixSeconds + 1800])
        // The machine's own clock: by an hour and by a second.
        _ = tick(&kit, after: .seconds(-3600))
        #expect(kit.app?.pending.map(\.next) == [kit.now.unixSeconds + 600, kit.now.unixSeconds + 5400])
        let before = kit.app?.pending
        _ = tick(&kit, after: .seconds(-1))
        #expect(kit.app?.pending == before)
    }

    @Test func `a clock that was set back a second ago does not change what is scheduled now`() throws {
        var kit = try PhoneKit()
        try schedule(&kit, "old", .after(.seconds(600)))
        #expect(tick(&kit).isEmpty)
        kit.now = kit.now + .seconds(-3600)
        try schedule(&kit, "new", .after(.seconds(600)))
        #expect(tick(&kit).isEmpty && kit.app?.pending.map(\.next) == [600, 600].map { kit.now.unixSeconds + $0 })
        // The user moves the device's clock before the next look at the machine's.
        kit.now = kit.now + .seconds(-3600)
        #expect(try set(&kit, clock: 60).isEmpty)
        #expect(kit.app?.pending.map(\.next) == [540, 540].map { kit.now.unixSeconds + $0 })
    }

    @Test func `a moment that comes again has one record that does not replace itself`() throws {
        var kit = try PhoneKit()
        try schedule(&kit, "noon", rule("day 12:30"))
        let first = try #require(tick(&kit, after: .seconds(1800)).first)
        #expect(tick(&kit, after: .seconds(-3600)).isEmpty)
        let again = kit.phone.tick(kit.now + .seconds(3600))
        #expect(records(again).map(\.id) == [first.id] && kit.snapshot.notifications.count == 1)
        #expect(!again.contains { if case .amend = $0 { true } else { false } })
    }

    @Test func `a clock that was set back while the device was off is noticed and a new sound is played`() async throws
    {
        let folder = try TemporaryFolder()
        func agent(_ seconds: Int64) throws -> DeviceAgent {
            try DeviceAgent(
                connection: DetachedConnection(),
                device: "d1",
                service: "localhost:5223",
                folder: try AgentFolder(folder.path + "/device"),
                clock: StandingClock(time: WallTime(seconds: 1_772_366_400 + seconds))
            )
        }
        let aps = JSON.object(["alert": .string("ready"), "sound": .string("own.wav")])
        func eggs(_ id: String) -> PhoneAction {
            let content = JSON.object(["aps": aps])
            return .schedule(
                PhoneKit.topic,
                LocalNotification(id: id, payload: content, trigger: .after(.seconds(600)))
            )
        }
        do {
            let before = try agent(0)
            try await before.install(bundle: ExpectedPayload.folder + "/Monopoly.app", allow: [.alert, .sound])
            try await before.perform(eggs("one"))
        }
        let after = try agent(-3600)
        try await after.perform(eggs("two"))
        #expect(try await after.pending(of: nil).map(\.next) == [600, 600].map { 1_772_366_400 - 3600 + $0 })
        let sounds = "\(folder.path)/device/containers/\(PhoneKit.topic)/Library/Sounds"
        try Data().write(to: URL(fileURLWithPath: sounds + "/own.wav"))
        var switches = PhoneSwitches()
        switches.clock = 600
        try await after.perform(.set(switches))
        #expect(await after.displayRecord(named: "two")?.sound == "own.wav")
    }

    @Test func `a corrected clock does not show the same moment again`() throws {
        var kit = try PhoneKit()
        try schedule(&kit, "noon", rule("day 12:30"))
        #expect(tick(&kit, after: .seconds(1800)).count == 1)
        #expect(tick(&kit, after: .seconds(-2)).isEmpty && tick(&kit, after: .seconds(3)).isEmpty)
        #expect(kit.app?.pending.map(\.next) == [kit.now.unixSeconds - 1 + 86_400])
    }

    @Test func `another time zone moves the calendar and not intervals`() throws {
        var kit = try PhoneKit()
        try schedule(&kit, "timer", .after(.seconds(600)))
        try schedule(&kit, "evening", rule("day 18:00"))
        try schedule(&kit, "party", moment("2026-03-01T20:00"))
        try schedule(&kit, "launch", moment("2026-03-01T21:00Z"))
        // Noon in UTC is 20:00 in Shanghai: the party begins now, and the evening was two hours ago.
        #expect(try set(&kit, zone: "Asia/Shanghai").compactMap(\.local) == ["party"])
        #expect(pending(kit) == ["timer", "launch", "evening"])
        #expect(kit.app?.pending.map(\.next) == [600, 9 * 3600, 22 * 3600].map { kit.now.unixSeconds + $0 })
        #expect(kit.snapshot.timeZone == "Asia/Shanghai")
        #expect(throws: DeviceError.self) { _ = try set(&kit, zone: "Europe/Atlantis") }
        // The machine travels, while the device is off: what was due before is shown, too.
        _ = try set(&kit, zone: "machine")
        kit.now = kit.now + .seconds(6 * 3600)
        kit.phone.machineZone = "America/New_York"
        #expect(records(kit.phone.start(kit.now)).compactMap(\.local) == ["timer", "evening"])
        #expect(kit.app?.pending.map(\.next) == [3, 5].map { kit.now.unixSeconds + $0 * 3600 })
    }

    @Test func `a test of an app moves the clock of a virtual device`() async throws {
        try await withVirtualDevice { device in
            try await device.agent.install(topic: PhoneKit.topic, allow: [.alert])
            // The second is what `UUID().uuidString` gives.
            let names = ["eggs", "9E3C1D1E-3B6E-4A7C-8F4E-0A4E6F1B2C3D"]
            for name in names {
                let eggs = LocalNotification(id: name, payload: payload("ready"), trigger: .after(.seconds(600)))
                try await device.agent.perform(.schedule(PhoneKit.topic, eggs))
                #expect(await device.agent.displayRecord(named: name) == nil)
            }
            var switches = PhoneSwitches()
            switches.clock = 600
            try await device.agent.perform(.set(switches))
            for name in names { #expect(await device.agent.displayRecord(named: name)?.body == "ready") }
        }
    }

    @Test func `its JSON is the same everywhere`() throws {
        for json in [
            #"{"do":"schedule","topic":"a.b","notification":"n","payload":{"aps":{"alert":"x"}},"after":1.5}"#,
            #"{"do":"schedule","topic":"a.b","notification":"n","payload":{"aps":{"alert":"x"}},"at":"2026-12-24T18:00"}"#,
            #"{"do":"schedule","topic":"a.b","notification":"n","payload":{"aps":{"alert":"x"}},"every":"day 07:00"}"#,
            #"{"do":"cancel","topic":"a.b","notification":"n"}"#, #"{"do":"cancel","topic":"a.b"}"#,
        ] {
            let action = try JSON.decode(PhoneAction.self, from: Array(json.utf8))
            let written = try JSON.decode(JSON.self, from: JSON.encode(action))
            #expect(try written == JSON.decode(JSON.self, from: Array(json.utf8)))
            guard case .schedule(let topic, let notification) = action else { continue }
            // On the local socket.
            let request = try JSON.encode(PhoneAction.schedule(topic, notification).request())
            #expect(try JSON.decode(PhoneAction.self, from: request) == action)
        }
        for wrong in [
            #""after":0"#, #""after":1e99"#, #""at":"soon""#, #""every":"1s""#, #""after":1,"every":"1h""#, #""x":1"#,
        ] {
            let json = #"{"do":"schedule","topic":"a.b","notification":"n","payload":{"aps":{"alert":"x"}},\#(wrong)}"#
            #expect(throws: DecodingError.self) { try JSON.decode(PhoneAction.self, from: Array(json.utf8)) }
        }
        // On the local socket, `id` is the number of the request, and not a notification.
        let all = #"{"id":"r7","do":"cancel","topic":"a.b"}"#
        let action = try JSON.decode(PhoneAction.self, from: Array(all.utf8))
        #expect(try action == .cancel(#require(Topic("a.b")), id: nil))
        for wrong in [
            #""do":"cancel","notification":5"#, #""do":"cancel","notification":null"#,
            #""do":"schedule","id":"n","payload":{"aps":{"alert":"x"}},"after":1"#,
        ] {
            let json = #"{"topic":"a.b",\#(wrong)}"#
            #expect(throws: DecodingError.self) { try JSON.decode(PhoneAction.self, from: Array(json.utf8)) }
        }
    }
}

/// A clock that stands still.
private struct StandingClock: WallClock {
    let time: WallTime

    func now() -> WallTime { time }
}
