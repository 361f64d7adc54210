import Foundation
import HeraldDevice
import HeraldJSON
import HeraldModel
import Testing

@testable import HeraldPhone

/// Notifications that arrive on a device.
@Suite struct PhoneReceiveTests {
    @Test func `shows a banner with badge and sound and remembers what was seen`() throws {
        var kit = try PhoneKit()
        let reception = kit.receive(#"{"aps":{"alert":"You got your emails.","badge":9,"sound":"bingbong.aiff"}}"#)
        let record = try #require(reception.record)
        #expect(record.shown && record.place == .banner && record.body == "You got your emails.")
        #expect(record.badge == DisplayRecord.Badge(before: 0, after: 9) && record.sound == "bingbong.aiff")
        #expect(kit.snapshot.banner == kit.newest?.id && kit.newest?.buttons == ["Close", "View"])
        #expect(kit.app?.badge == 9 && kit.snapshot.sounds.map(\.name) == ["bingbong.aiff"])
        #expect(reception.effects == [.record(record)])
    }

    @Test func `speaks the user's language and changes nothing that is shown`() throws {
        var kit = try PhoneKit()
        let payload = #"{"aps":{"alert":{"loc-key":"GAME_PLAY_REQUEST_FORMAT","loc-args":["Jenna","Frank"]}}}"#
        kit.receive(payload)
        let english = try #require(kit.newest?.body)
        _ = try kit.phone.appConnected(PhoneKit.topic, wants: nil, kit.now)
        var switches = PhoneSwitches()
        switches.languages = ["fr", "en"]
        #expect(try kit.does(.set(switches)) == [.notifyApp(PhoneKit.topic, .languages(["fr", "en"]))])
        #expect(kit.newest?.body == english)
        #expect(kit.receive(payload).record?.language == "fr")
        #expect(kit.newest?.body != english && kit.snapshot.notifications.last?.body == english)
        #expect(kit.snapshot.availableLanguages == ["de", "en", "es", "fr", "ja", "zh-Hans"])
    }

    @Test func `a repeated one is shown once also after a restart`() throws {
        var kit = try PhoneKit()
        kit.receive(#"{"aps":{"alert":"a"}}"#)
        let again = kit.notification(#"{"aps":{"alert":"a"}}"#)
        #expect(kit.phone.receive(again, kit.now) == Phone.Reception(isRepeated: true))
        _ = try kit.restart()
        #expect(kit.phone.receive(again, kit.now).isRepeated)
        #expect(kit.snapshot.notifications.count == 1)
        // The same identifier for something else is something else.
        let other = kit.notification(#"{"aps":{"alert":"b"}}"#)
        #expect(!kit.phone.receive(other, kit.now).isRepeated)
    }

    @Test func `a collapse identifier replaces and moves up`() throws {
        var kit = try PhoneKit()
        let first = try #require(kit.receive(#"{"aps":{"alert":"1:0"}}"#, collapse: "match").record)
        kit.receive(#"{"aps":{"alert":"other"}}"#)
        let second = kit.receive(#"{"aps":{"alert":"2:0"}}"#, collapse: "match")
        #expect(kit.snapshot.notifications.map(\.body) == ["2:0", "other"])
        #expect(kit.newest?.replaced == true)
        #expect(second.record?.replaces == first.apnsID)
        #expect(second.effects.contains(.amend(first.apnsID, .replaced(by: second.record?.apnsID ?? ""))))
    }

    @Test func `in the foreground the app gets it and nothing is shown`() throws {
        var kit = try PhoneKit()
        try kit.does(.open(PhoneKit.topic))
        let reception = kit.receive(#"{"aps":{"alert":"a","badge":3}}"#)
        #expect(reception.record?.deliveredToApp == true && reception.record?.shown == false)
        #expect(reception.record?.because.first?.contains("foreground") == true)
        #expect(kit.snapshot.notifications.isEmpty && kit.app?.badge == 0)
        guard case .notifyApp(PhoneKit.topic, .notification(let incoming))? = reception.effects.last else {
            Issue.record("the app is not told")
            return
        }
        #expect(incoming.cause == .foreground && incoming.state == .foreground)
        // Behind the lock it is not seen, and so it is shown.
        try kit.does(.lock)
        #expect(kit.receive(#"{"aps":{"alert":"b"}}"#).record?.place == .lockScreen)
        #expect(kit.newest?.slider == "View" && kit.snapshot.banner == nil)
    }

    @Test func `badges are set and removed and left`() throws {
        var kit = try PhoneKit()
        kit.receive(#"{"aps":{"badge":4}}"#)
        kit.receive(#"{"aps":{"alert":"a"}}"#)
        #expect(kit.app?.badge == 4)
        #expect(kit.receive(#"{"aps":{"badge":0}}"#).record?.badge == DisplayRecord.Badge(before: 4, after: 0))
        #expect(kit.app?.badge == 0)
    }

    @Test func `what is not allowed does not happen`() throws {
        var kit = try PhoneKit(allow: [.badge])
        let record = try #require(kit.receive(#"{"aps":{"alert":"a","badge":1,"sound":"default"}}"#).record)
        #expect(!record.shown && record.sound == nil && record.badge.after == 1)
        #expect(
            record.because.contains { $0.contains("alerts off") }
                && record.because.contains { $0.contains("sounds off") }
        )
    }

    @Test func `a silent one wakes a program or an app unless the user ended it`() throws {
        var kit = try PhoneKit(programs: [.background, .receive])
        let silent = #"{"aps":{"content-available":1},"n":1}"#
        let woken = kit.receive(silent, type: .background)
        let runs = woken.effects.compactMap { if case .run(let run) = $0 { run } else { nil } }
        #expect(runs.map(\.event) == [.background])
        let ended = kit.phone.runEnded(try #require(runs.first).number, .newData, kit.now)
        #expect(ended == [.amend(woken.record?.apnsID ?? "", .ranInBackground(.newData))])
        try kit.does(.end(PhoneKit.topic))
        #expect(kit.receive(silent, type: .background).record?.backgroundLaunch == false)
        kit.receive(#"{"aps":{"content-available":1},"n":2}"#, type: .background)
        // Opened again, it gets the newest one.
        let effects = try kit.does(.open(PhoneKit.topic))
        let held = effects.compactMap { if case .run(let run) = $0 { run } else { nil } }
        #expect(held.map(\.event) == [.background])
        #expect(held.first?.arrival.map { String(decoding: $0.payload, as: UTF8.self) }?.contains(#""n":2"#) == true)
    }

    @Test func `a silent one of which nothing runs wakes nothing`() throws {
        var kit = try PhoneKit(programs: [.receive])
        let silent = #"{"aps":{"content-available":1}}"#
        let state = kit.app?.state
        let absent = kit.receive(silent, type: .background)
        #expect(absent.record?.backgroundLaunch == false && kit.app?.state == state)
        #expect(absent.record?.because == ["it is silent", Phone.nothingToRun])
        #expect(absent.record?.words.contains("the app runs in the background") == false)
        // An app that was on the socket and is away is not told.
        _ = try kit.phone.appConnected(PhoneKit.topic, wants: nil, kit.now)
        #expect(kit.receive(silent, type: .background).record?.backgroundLaunch == true)
        _ = kit.phone.appDisconnected(PhoneKit.topic, kit.now)
        let away = kit.receive(silent, type: .background).record
        #expect(away?.backgroundLaunch == false && away?.because.contains(Phone.nothingToRun) == true)
        #expect(kit.app?.state == .notRunning)
    }

    @Test func `an app on the socket must say that it is done`() throws {
        var kit = try PhoneKit()
        _ = try kit.phone.appConnected(PhoneKit.topic, wants: nil, kit.now)
        let silent = #"{"aps":{"content-available":1}}"#
        let first = try #require(kit.receive(silent, type: .background).record)
        let second = try #require(kit.receive(silent, type: .background).record)
        #expect(
            try kit.phone.done(PhoneKit.topic, apnsID: first.apnsID, .noData, kit.now)
                == [.amend(first.apnsID, .ranInBackground(.noData))]
        )
        kit.now = kit.now + .seconds(29)
        #expect(kit.phone.tick(kit.now) == [])
        #expect(kit.phone.nextTick == Double(kit.now.seconds) + 1)
        kit.now = kit.now + .seconds(1)
        #expect(kit.phone.tick(kit.now) == [.amend(second.apnsID, .ranInBackground(.timedOut))])
        #expect(throws: DeviceError.self) {
            try kit.phone.done(PhoneKit.topic, apnsID: second.apnsID, .newData, kit.now)
        }
    }

    @Test func `a service program changes what is shown`() throws {
        var kit = try PhoneKit(programs: [.service, .receive])
        let mutable = #"{"aps":{"alert":"secret","mutable-content":1}}"#
        let reception = kit.receive(mutable)
        #expect(reception.record == nil && kit.snapshot.notifications.isEmpty)
        // It goes on after a restart.
        #expect(try kit.restart().contains { if case .run(let run) = $0 { run.event == .service } else { false } })
        let number = try #require(kit.phone.state.runs.first?.number)
        let changed = Array(#"{"aps":{"alert":"plain","mutable-content":1}}"#.utf8)
        let shown = kit.phone.serviceEnded(number, .changed, payload: changed, kit.now).first
        #expect(shown?.record?.body == "plain" && shown?.record?.extension == .changed)
        // Its other programs get what was sent.
        #expect(kit.phone.state.runs.map(\.event) == [.receive])
        #expect(kit.phone.state.runs.first?.arrival?.payload == Data(mutable.utf8))
        // Nobody runs it for what is silent.
        #expect(kit.receive(#"{"aps":{"badge":1,"mutable-content":1}}"#).record != nil)
    }

    @Test func `what service programs change is shown in the order of arrival`() throws {
        var kit = try PhoneKit(programs: [.service])
        for text in ["old", "new"] {
            kit.receive(#"{"aps":{"alert":"\#(text)","badge":\#(text.count),"mutable-content":1}}"#, collapse: "one")
        }
        let numbers = kit.phone.state.runs.map(\.number)
        #expect(kit.phone.serviceEnded(numbers[1], .failed, payload: nil, kit.now).isEmpty)
        let shown = kit.phone.serviceEnded(numbers[0], .failed, payload: nil, kit.now)
        #expect(shown.map(\.record?.body) == ["old", "new"])
        #expect(kit.snapshot.notifications.map(\.body) == ["new"] && kit.phone.endedServices.isEmpty)
    }

    @Test func `the time of a run does not depend on a clock that is set back`() throws {
        var kit = try PhoneKit()
        _ = try kit.phone.appConnected(PhoneKit.topic, wants: nil, kit.now)
        let record = try #require(kit.receive(#"{"aps":{"content-available":1}}"#, type: .background).record)
        _ = kit.phone.hasToTick(kit.now)
        kit.now = kit.now - .seconds(3600)
        let notices = kit.phone.hasToTick(kit.now)
        #expect(notices && kit.phone.tick(kit.now).isEmpty)
        kit.now = kit.now + .seconds(30)
        #expect(kit.phone.tick(kit.now) == [.amend(record.apnsID, .ranInBackground(.timedOut))])
    }

    @Test func `what is kept is bounded`() throws {
        var kit = try PhoneKit(programs: [.receive])
        for number in 0..<150 { kit.receive(#"{"aps":{"alert":"\#(number)","sound":"default"}}"#) }
        #expect(kit.snapshot.notifications.count == 100 && kit.newest?.body == "149")
        for _ in 0..<150 { try kit.does(.lock) }
        #expect(kit.snapshot.sounds.count == 10 && kit.snapshot.log.count == 100)
        #expect(kit.phone.state.runs.count == 128)
    }

    @Test func `what is for nobody is dropped`() throws {
        var kit = try PhoneKit()
        #expect(kit.receive(#"{"aps":{"alert":"a"}}"#, PhoneKit.other) == Phone.Reception())
    }

    @Test(arguments: ExpectedPayload.all) func `every expected payload is shown as expected`(
        _ payload: ExpectedPayload
    ) throws {
        guard payload.pushType == .alert || payload.pushType == .background else { return }
        for wanted in payload.expectation["present"]?.elements ?? [] {
            let wanted = try #require(wanted.members)
            var kit = try PhoneKit()
            var switches = PhoneSwitches()
            switches.languages = [try #require(wanted["language"]?.text)]
            try kit.does(.set(switches))
            switch wanted["state"]?.text {
            case "foreground": try kit.does(.open(PhoneKit.topic))
            case "locked": try kit.does(.lock)
            default: break
            }
            let reception = kit.receive(String(decoding: payload.payload, as: UTF8.self), type: payload.pushType)
            let record = try #require(reception.record)
            if let body = wanted["body"] { #expect(record.body == body.text) }
            if let title = wanted["title"] { #expect(record.title == title.text) }
            if let buttons = wanted["buttons"]?.elements { #expect(record.buttons == buttons.compactMap(\.text)) }
            if let sound = wanted["sound"] { #expect(record.sound == sound.text) }
            if let shown = wanted["shown"] { #expect(.boolean(record.shown) == shown) }
            if let badge = wanted["badge"]?.integer { #expect(record.badge.after == badge) }
        }
    }
}
