import Foundation
import HeraldDevice
import HeraldJSON
import HeraldModel
import Testing

@testable import HeraldPhone

/// Actions of the user, and messages to apps.
@Suite struct PhoneActionTests {
    private let all = Set(NotificationKind.allCases)

    @Test func `an app is registered once the user has answered`() throws {
        var kit = try PhoneKit(allow: nil)
        #expect(kit.snapshot.questions == [PhoneKit.topic] && kit.app?.permission == nil)
        #expect(kit.phone.start(kit.now) == [.setSaving(false)])
        let effects = try kit.does(.permit(PhoneKit.topic, [.alert, .sound]))
        #expect(effects.first == .register(DeviceApp(topic: PhoneKit.topic)))
        #expect(effects.last == .notifyApp(PhoneKit.topic, .permission(PhoneKit.topic, [.alert, .sound])))
        #expect(kit.snapshot.questions.isEmpty && kit.app?.permission?.badges == false)
    }

    @Test func `a refused app is registered and switched off at the service until it knows`() throws {
        var kit = try PhoneKit(allow: nil, wakes: false)
        let off = PhoneEffect.setEnabled(false, for: PhoneKit.topic)
        #expect(try kit.does(.permit(PhoneKit.topic, [])).contains(off))
        #expect(try kit.restart().contains(off))
        kit.phone.settingsTaken(PhoneKit.topic, isEnabled: false)
        #expect(try !kit.restart().contains(off))
        let on = try kit.does(.permit(PhoneKit.topic, [.badge]))
        #expect(
            on == [
                .setEnabled(true, for: PhoneKit.topic), .notifyApp(PhoneKit.topic, .settings(PhoneKit.topic, [.badge])),
            ]
        )
        #expect(
            try kit.does(.permit(PhoneKit.topic, all)) == [
                .notifyApp(PhoneKit.topic, .settings(PhoneKit.topic, [.alert, .badge, .sound]))
            ]
        )
    }

    @Test func `a tap opens the app with the payload and unlocks`() throws {
        var kit = try PhoneKit(programs: [.open])
        try kit.does(.lock)
        let record = try #require(kit.receive(#"{"aps":{"alert":{"body":"a","launch-image":"x"}},"k":1}"#).record)
        let effects = try kit.does(.tap(id: try #require(kit.newest?.id)))
        #expect(!kit.snapshot.locked && kit.snapshot.foreground == PhoneKit.topic)
        #expect(kit.app?.openedWith?.members?["k"] == .number(1) && kit.app?.launchImage == "Launch.png")
        #expect(kit.app?.launchPicture == "Launch.png")
        #expect(effects.contains { if case .run(let run) = $0 { run.event == .open } else { false } })
        #expect(effects.contains(.amend(record.apnsID, .responded(DisplayRecord.Response(kind: .opened)))))
        #expect(kit.snapshot.notifications.isEmpty)
        try kit.does(.home)
        #expect(kit.app?.state == .background && kit.snapshot.foreground == nil)
        kit.receive(#"{"aps":{"alert":"b"}}"#)
        try kit.does(.tap(id: try #require(kit.newest?.id)))
        #expect(kit.app?.launchImage == "the previous snapshot" && kit.app?.launchPicture == nil)
    }

    @Test func `what comes to an app that is open is shown to the app until it is left`() throws {
        var kit = try PhoneKit()
        kit.receive(#"{"aps":{"alert":"before"}}"#)
        #expect(kit.app?.received == nil)
        try kit.does(.open(PhoneKit.topic))
        let record = try #require(kit.receive(#"{"aps":{"alert":"now"},"k":1}"#).record)
        #expect(kit.app?.received?.apnsID == record.apnsID && kit.app?.received?.payload?.members?["k"] == .number(1))
        try kit.does(.home)
        #expect(kit.app?.received == nil)
        try kit.does(.open(PhoneKit.topic))
        kit.receive(#"{"aps":{"alert":"again"}}"#)
        try kit.does(.end(PhoneKit.topic))
        #expect(kit.app?.received == nil)
    }

    @Test func `an app sets its badge as far as the user lets it`() throws {
        var kit = try PhoneKit()
        kit.receive(#"{"aps":{"badge":3}}"#)
        #expect(try kit.does(.badge(PhoneKit.topic, 0)).isEmpty && kit.app?.badge == 0)
        try kit.does(.badge(PhoneKit.topic, 7))
        #expect(kit.app?.badge == 7)
        for number in [-1, PhoneAction.highestBadge + 1] {
            #expect(throws: DeviceError.self) { try kit.does(.badge(PhoneKit.topic, number)) }
        }
        var silent = try PhoneKit(allow: [.alert])
        try silent.does(.badge(PhoneKit.topic, 7))
        #expect(silent.app?.badge == 0)
    }

    @Test func `closing tells nobody but the record`() throws {
        var kit = try PhoneKit(programs: [.open])
        let record = try #require(kit.receive(#"{"aps":{"alert":"a"}}"#).record)
        let id = try #require(kit.newest?.id)
        #expect(
            try kit.does(.close(id: id)) == [.amend(record.apnsID, .responded(DisplayRecord.Response(kind: .closed)))]
        )
        #expect(kit.snapshot.banner == nil)
        #expect(throws: DeviceError.self) { try kit.does(.close(id: id)) }
        kit.receive(#"{"aps":{"alert":"a"}}"#)
        kit.receive(#"{"aps":{"alert":"b"}}"#)
        #expect(try kit.does(.clear).count == 2 && kit.snapshot.notifications.isEmpty)
    }

    @Test func `unlocking leads into the app whose alert the lock screen shows, once`() throws {
        var kit = try PhoneKit()
        kit.receive(#"{"aps":{"alert":"before"}}"#)
        try kit.does(.lock)
        #expect(kit.snapshot.lockAlert == nil, "it was shown before the screen was locked")
        kit.receive(#"{"aps":{"alert":"first"}}"#)
        kit.receive(#"{"aps":{"alert":"second"}}"#)
        kit.receive(#"{"aps":{"alert":{"body":"p"},"interruption-level":"passive"}}"#)
        let second = try #require(kit.snapshot.notifications.first { $0.body == "second" })
        #expect(kit.snapshot.lockAlert == second.id, "a passive one does not light the screen")
        try kit.does(.close(id: second.id))
        var switches = PhoneSwitches()
        switches.locked = false
        let effects = try kit.does(.set(switches))
        #expect(kit.snapshot.foreground == PhoneKit.topic && !kit.snapshot.locked && kit.snapshot.lockAlert == nil)
        #expect(kit.app?.openedWith?.members?["aps"] == .object(["alert": .string("first")]))
        #expect(
            effects.contains {
                if case .amend(_, .responded(let response)) = $0 { response.kind == .opened } else { false }
            }
        )
        try kit.does(.home)
        try kit.does(.lock)
        try kit.does(.unlock)
        #expect(kit.snapshot.foreground == nil && kit.snapshot.notifications.map(\.body) == ["p", "before"])
    }

    @Test func `buttons of a category reach the app`() throws {
        var kit = try PhoneKit(programs: [.action])
        try kit.does(.lock)
        kit.receive(#"{"aps":{"alert":"a","category":"INVITE"}}"#)
        let id = try #require(kit.newest?.id)
        #expect(throws: DeviceError.self) { try kit.does(.act(id: id, action: "decline", text: nil)) }
        #expect(throws: DeviceError.self) { try kit.does(.act(id: id, action: "reply", text: nil)) }
        #expect(kit.snapshot.locked && kit.snapshot.notifications.count == 1, "what is wrong changes nothing")
        let effects = try kit.does(.act(id: id, action: "reply", text: "yes"))
        let run = effects.compactMap { if case .run(let run) = $0 { run } else { nil } }.first
        #expect(run?.event == .action && run?.action == "reply" && run?.text == "yes")
        #expect(!kit.snapshot.locked && kit.snapshot.foreground == nil && kit.app?.state == .background)
        kit.receive(#"{"aps":{"alert":"a","category":"INVITE"}}"#)
        try kit.does(.act(id: try #require(kit.newest?.id), action: "accept", text: nil))
        #expect(kit.snapshot.foreground == PhoneKit.topic)
    }

    @Test func `removing an app takes all that it has`() throws {
        var kit = try PhoneKit()
        let token = try #require(DeviceToken(bytes: Array(repeating: 7, count: 32)))
        _ = kit.phone.gotToken(token, for: PhoneKit.topic, kit.now)
        kit.receive(#"{"aps":{"alert":"a","badge":1}}"#)
        let effects = try kit.does(.remove(PhoneKit.topic))
        let gone = PhoneEffect.unregister(PhoneKit.topic, in: nil)
        #expect(effects.contains(gone) && effects.contains(.deleteFiles(PhoneKit.topic)))
        #expect(kit.snapshot.apps.isEmpty && kit.snapshot.notifications.isEmpty && kit.snapshot.banner == nil)
        // Until the service and the files say so, it is said again.
        #expect(try kit.restart() == [.deleteFiles(PhoneKit.topic), gone, .setSaving(false)])
        kit.phone.removed(PhoneKit.topic)
        kit.phone.deleted(PhoneKit.topic)
        #expect(try kit.restart() == [.setSaving(false)])
    }

    @Test func `an upgrade keeps permission, token and number`() throws {
        var kit = try PhoneKit(allow: [.alert, .badge])
        let token = try #require(DeviceToken(bytes: Array(repeating: 7, count: 32)))
        _ = kit.phone.gotToken(token, for: PhoneKit.topic, kit.now)
        kit.receive(#"{"aps":{"badge":5}}"#)
        var information = AppInformation(topic: PhoneKit.topic)
        information.name = "Monopoly 2"
        _ = try kit.phone.install(information, nil, allow: all, kit.now)
        #expect(kit.app?.name == "Monopoly 2" && kit.app?.badge == 5 && kit.app?.token == token.hex)
        #expect(kit.app?.permission?.sounds == false)
    }

    @Test func `a setting is repeated until the service has confirmed it, also one that is as before`() throws {
        var kit = try PhoneKit(allow: all, wakes: false)
        _ = try kit.does(.permit(PhoneKit.topic, []))
        // The service may have taken that, but its answer is lost.
        _ = try kit.does(.permit(PhoneKit.topic, [.badge]))
        let on = PhoneEffect.setEnabled(true, for: PhoneKit.topic)
        #expect(try kit.restart().contains(on))
        // A late answer to the former one.
        kit.phone.settingsTaken(PhoneKit.topic, isEnabled: false)
        #expect(try kit.restart().contains(on))
        kit.phone.settingsTaken(PhoneKit.topic, isEnabled: true)
        #expect(try !kit.restart().contains(on))
    }

    @Test func `a topic belongs to one app`() throws {
        var kit = try PhoneKit()
        let voip = try #require(Topic(PhoneKit.topic.name + ".voip"))
        _ = try kit.phone.install(AppInformation(topic: voip), nil, allow: nil, kit.now)
        let before = kit.phone.state
        var bundle = AppInformation(topic: PhoneKit.topic)
        bundle.further = [voip]
        let error = #expect(throws: DeviceError.self) { try kit.phone.install(bundle, nil, allow: nil, kit.now) }
        #expect(error?.message.contains("the app \(voip) has the topic \(voip)") == true && kit.phone.state == before)
    }

    @Test func `an upgrade that moves to the other environment ends the registration there`() throws {
        var kit = try PhoneKit(allow: [], wakes: false)
        let token = try #require(DeviceToken(bytes: Array(repeating: 7, count: 32)))
        _ = kit.phone.gotToken(token, for: PhoneKit.topic, kit.now)
        kit.phone.settingsTaken(PhoneKit.topic, isEnabled: false)
        var information = AppInformation(topic: PhoneKit.topic)
        information.environment = .sandbox
        let effects = try kit.phone.install(information, kit.phone.bundles[PhoneKit.topic], allow: nil, kit.now)
        #expect(
            effects == [
                .unregister(PhoneKit.topic, in: nil),
                .register(DeviceApp(topic: PhoneKit.topic, environment: .sandbox)),
                .setEnabled(false, for: PhoneKit.topic),
            ]
        )
        #expect(kit.app?.token == nil)
        // Also after a restart, until the service has confirmed it.
        #expect(try kit.restart().first == .unregister(PhoneKit.topic, in: nil))
    }

    @Test func `the token of an earlier run is presented with the app`() throws {
        var kit = try PhoneKit()
        let token = try #require(DeviceToken(bytes: Array(repeating: 7, count: 32)))
        _ = kit.phone.gotToken(token, for: PhoneKit.topic, kit.now)
        #expect(
            try kit.restart() == [
                .present(token, for: PhoneKit.topic), .register(DeviceApp(topic: PhoneKit.topic)), .setSaving(false),
            ]
        )
    }

    @Test func `apps of the socket come, move and go`() throws {
        var kit = try PhoneKit(allow: nil)
        _ = try kit.phone.appConnected(PhoneKit.other, wants: [.alert], kit.now)
        #expect(kit.snapshot.questions == [PhoneKit.topic, PhoneKit.other])
        #expect(
            try kit.does(.permit(PhoneKit.other, all)).last
                == .notifyApp(PhoneKit.other, .permission(PhoneKit.other, [.alert]))
        )
        try kit.phone.appMoved(PhoneKit.other, to: .foreground)
        #expect(kit.snapshot.foreground == PhoneKit.other)
        _ = kit.phone.appDisconnected(PhoneKit.other, kit.now)
        #expect(kit.snapshot.foreground == nil)
        #expect(kit.snapshot.apps.first { $0.topic == PhoneKit.other }?.state == .notRunning)
    }

    @Test func `live activities age and go`() throws {
        var kit = try PhoneKit()
        let start = kit.now.seconds
        func payload(_ event: String, _ more: String) -> String {
            #"{"aps":{"event":"\#(event)","timestamp":\#(start),"content-state":{"score":"\#(event)"}\#(more)}}"#
        }
        kit.receive(payload("update", ""), type: .liveactivity)
        #expect(kit.snapshot.activities.isEmpty)
        kit.receive(
            payload("start", #","attributes-type":"Game","attributes":{"id":1},"alert":{"title":"On"}"#),
            type: .liveactivity
        )
        kit.receive(payload("update", #","stale-date":\#(start + 60)"#), type: .liveactivity)
        #expect(kit.snapshot.activities.count == 1 && kit.snapshot.activities.first?.title == "On")
        #expect(kit.snapshot.activities.first?.content.members?["score"] == .string("update"))
        kit.now = kit.now + .seconds(60)
        _ = kit.phone.tick(kit.now)
        #expect(kit.snapshot.activities.first?.state == .stale)
        kit.receive(payload("end", #","dismissal-date":\#(start + 90)"#), type: .liveactivity)
        #expect(kit.snapshot.activities.first?.state == .ended && kit.phone.nextTick == Double(start + 90))
        kit.now = kit.now + .seconds(30)
        _ = kit.phone.tick(kit.now)
        #expect(kit.snapshot.activities.isEmpty && kit.phone.nextTick == nil)
    }

    @Test func `switches reach the service and outlive a restart`() throws {
        var kit = try PhoneKit()
        var switches = PhoneSwitches()
        switches.network = false
        switches.saving = true
        switches.muted = true
        switches.locked = true
        #expect(try kit.does(.set(switches)) == [.setNetwork(false), .setSaving(true)])
        #expect(try kit.does(.set(switches)) == [])
        let effects = try kit.restart()
        #expect(effects.contains(.setNetwork(false)) && effects.contains(.setSaving(true)))
        #expect(kit.snapshot.locked && kit.snapshot.muted)
        #expect(throws: DeviceError.self) { try kit.does(.home) }
        switches.languages = ["pt_BR", "zh-Hans-CN", "xx-nonsense!"]
        let error = #expect(throws: DeviceError.self) { try kit.does(.set(switches)) }
        #expect(error?.message.contains("\"xx-nonsense!\" is not a language code") == true)
    }

    @Test(arguments: [
        #"{"do":"lock"}"#, #"{"do":"open","topic":"com.example.app"}"#, #"{"do":"tap","id":"n1"}"#,
        #"{"do":"act","id":"n1","action":"reply","text":"yes"}"#, #"{"do":"permit","topic":"a.b","allow":["alert"]}"#,
        #"{"do":"permit","topic":"a.b","allow":["alert"],"style":"none"}"#,
        #"{"do":"categories","topic":"a.b","categories":{}}"#,
        #"{"do":"subscribe","topic":"a.b","channel":"c"}"#, #"{"do":"unsubscribe","topic":"a.b","channel":"c"}"#,
        #"{"do":"set","languages":["de"],"muted":true}"#, #"{"do":"remove","topic":"a.b"}"#, #"{"do":"clear"}"#,
    ])
    func `actions are the same in JSON`(_ text: String) throws {
        let action = try JSON.decode(PhoneAction.self, from: Array(text.utf8))
        let written = try JSON.encode(action)
        #expect(
            try JSON.decode(JSON.self, from: written)
                == JSON.decode(JSON.self, from: Array(text.utf8))
        )
    }

    @Test(arguments: [
        (#"{"do":"fly"}"#, "must be one of"), (#"{"do":"tap"}"#, "needs the text \"id\""),
        (#"{"do":"open","topic":"a b"}"#, "must be an app"), (#"{"do":"permit","topic":"a","allow":["x"]}"#, "list of"),
        (#"{"do":"permit","topic":"a","allow":[],"style":"loud"}"#, "\"style\" must be"),
        (#"{"do":"categories","topic":"a","categories":[]}"#, "must be an object, like"),
        (#"{"do":"categories","topic":"a","categories":{"B":{}}}"#, "categories: B has no list \"actions\""),
        (
            #"{"do":"categories","topic":"a","categories":{"B":{"actions":[{"identifier":"c"}]}}}"#,
            "categories: an action of B has no"
        ),
        (#"{"do":"subscribe","topic":"a"}"#, "needs the text \"channel\""),
        (#"{"do":"set","muted":1}"#, "true or false"), (#"{"do":"set","mute":true}"#, "needs one of"),
    ])
    func `wrong actions are told in words`(_ text: String, _ words: String) throws {
        let error = #expect(throws: DecodingError.self) {
            try JSON.decode(PhoneAction.self, from: Array(text.utf8))
        }
        guard case .dataCorrupted(let context)? = error else {
            Issue.record("another error: \(String(describing: error))")
            return
        }
        #expect(context.debugDescription.contains(words))
    }

    @Test func `a snapshot has all its members`() throws {
        var kit = try PhoneKit()
        kit.receive(#"{"aps":{"alert":"a"}}"#)
        let bytes = try JSON.encode(kit.snapshot)
        #expect(try JSON.decode(PhoneSnapshot.self, from: bytes) == kit.snapshot)
        let members = try #require(JSON.decode(JSON.self, from: bytes).members)
        #expect(members["foreground"] == .null && members["available_languages"] != nil)
        #expect(members["apps"]?.elements?.first?.members?["opened_with"] == .null)
    }
}
