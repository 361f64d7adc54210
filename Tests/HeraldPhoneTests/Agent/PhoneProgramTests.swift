import HeraldDevice
import HeraldJSON
import HeraldModel
import Testing

@testable import HeraldPhone

/// The programs that a phone runs, and the notifications that reach an app which is not open.
@Suite struct PhoneProgramTests {
    private let silent = #"{"aps":{"content-available":1}}"#

    private func runs(_ effects: [PhoneEffect]) -> [PhoneRun] {
        effects.compactMap { if case .run(let run) = $0 { run } else { nil } }
    }

    private func token(_ byte: UInt8) throws -> DeviceToken {
        try #require(DeviceToken(bytes: Array(repeating: byte, count: 32)))
    }

    @Test func `an app that is not open hears nothing until it is opened, unless its bundle has the background mode`()
        throws
    {
        let alert = #"{"aps":{"alert":"a"}}"#
        var waking = try PhoneKit(programs: [.receive])
        #expect(runs(waking.receive(alert).effects).map(\.event) == [.receive])
        var kit = try PhoneKit(programs: [.receive, .open], wakes: false)
        #expect(runs(kit.receive(alert).effects).isEmpty)
        let opened = runs(try kit.does(.tap(id: try #require(kit.newest?.id))))
        #expect(opened.map(\.event) == [.open] && opened.first?.arrival != nil)
        #expect(runs(kit.receive(alert).effects).map(\.event) == [.receive], "it is open")
    }

    @Test func `silent notifications do not depend on the permission`() throws {
        var kit = try PhoneKit(allow: nil, programs: [.background])
        let off = PhoneEffect.setEnabled(false, for: PhoneKit.topic)
        #expect(try !kit.does(.permit(PhoneKit.topic, [])).contains(off))
        #expect(runs(kit.receive(silent, type: .background).effects).map(\.event) == [.background])
        // An upgrade without the background mode is switched off, and back on by the next one.
        var bundle = try #require(kit.phone.bundles[PhoneKit.topic])
        let information = kit.phone.state.apps[0].information
        bundle.wakesInBackground = false
        #expect(try kit.phone.install(information, bundle, allow: nil, kit.now).contains(off))
        bundle.wakesInBackground = true
        let on = PhoneEffect.setEnabled(true, for: PhoneKit.topic)
        #expect(try kit.phone.install(information, bundle, allow: nil, kit.now).contains(on))
    }

    @Test func `programs hear of token, permission and languages`() throws {
        var kit = try PhoneKit(allow: nil, programs: [.permission, .settings, .token, .refused, .languages])
        let token = try token(1)
        let permission = runs(try kit.does(.permit(PhoneKit.topic, [.alert])))
        #expect(permission.map(\.event) == [.permission])
        #expect(permission.first?.news?["granted"] == .array([.string("alert")]))
        let settings = runs(try kit.does(.permit(PhoneKit.topic, [])))
        #expect(settings.map(\.event) == [.settings] && settings.first?.news?["granted"] == .array([]))
        let first = runs(kit.phone.gotToken(token, for: PhoneKit.topic, kit.now))
        #expect(first.map(\.event) == [.token] && first.first?.news?["token"] == .string(token.hex))
        #expect(runs(kit.phone.gotToken(token, for: PhoneKit.topic, kit.now)).isEmpty, "it is known")
        let refused = runs(kit.phone.appRefused(PhoneKit.topic, reason: "full", kit.now))
        #expect(refused.map(\.event) == [.refused] && refused.first?.news?["reason"] == .string("full"))
        var switches = PhoneSwitches()
        switches.languages = ["fr"]
        let languages = runs(try kit.does(.set(switches)))
        #expect(languages.map(\.event) == [.languages] && languages.first?.language == "fr")
        #expect(languages.first?.news?["languages"] == .array([.string("fr")]))
        // It goes on after a restart.
        #expect(try runs(kit.restart()).count == 5)
    }

    @Test func `an app that the user ended hears of its token when it is opened, and after an upgrade`() throws {
        var kit = try PhoneKit(programs: [.token, .languages])
        let token = try token(1)
        try kit.does(.end(PhoneKit.topic))
        #expect(runs(kit.phone.gotToken(token, for: PhoneKit.topic, kit.now)).isEmpty)
        var switches = PhoneSwitches()
        switches.languages = ["fr"]
        #expect(runs(try kit.does(.set(switches))).isEmpty)
        let opened = runs(try kit.does(.open(PhoneKit.topic)))
        #expect(opened.map(\.event) == [.token] && opened.first?.news?["token"] == .string(token.hex))
        let bundle = kit.phone.bundles[PhoneKit.topic]
        let information = kit.phone.state.apps[0].information
        #expect(runs(try kit.phone.install(information, bundle, allow: nil, kit.now)).map(\.event) == [.token])
    }

    @Test func `an app registers its categories, with a bundle or without, and they are kept`() throws {
        var kit = try PhoneKit()
        _ = try kit.phone.appConnected(PhoneKit.other, wants: nil, kit.now)
        try kit.does(.permit(PhoneKit.other, [.alert]))
        let payload = #"{"aps":{"alert":"a","category":"INVITE"}}"#
        let action = NotificationCategory.Action(identifier: "yes", title: "PLAY")
        for topic in [PhoneKit.topic, PhoneKit.other] {
            try kit.does(.categories(topic, [NotificationCategory(identifier: "INVITE", actions: [action])]))
        }
        _ = try kit.restart()
        kit.receive(payload)
        #expect(kit.newest?.actions.map(\.title) == ["Play"], "a key of the bundle")
        kit.receive(payload, PhoneKit.other)
        #expect(kit.newest?.actions.map(\.title) == ["PLAY"])
        try kit.does(.categories(PhoneKit.topic, []))
        kit.receive(payload)
        #expect(kit.newest?.actions.isEmpty == true)
        #expect(throws: DeviceError.self) { try kit.does(.categories(Topic.unlikely, [])) }
    }

    @Test func `the app sees the button that the user pressed until it is left`() throws {
        var kit = try PhoneKit()
        let record = try #require(kit.receive(#"{"aps":{"alert":"a","category":"INVITE"},"k":1}"#).record)
        try kit.does(.act(id: try #require(kit.newest?.id), action: "accept", text: nil))
        let pressed = try #require(kit.app?.action)
        #expect(pressed.action == "accept" && pressed.apnsID == record.apnsID)
        #expect(pressed.payload?.members?["k"] == .number(1))
        try kit.does(.home)
        #expect(kit.app?.action == nil)
    }
}
