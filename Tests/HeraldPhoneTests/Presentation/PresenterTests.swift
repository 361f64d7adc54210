import HeraldJSON
import HeraldModel
import Testing

@testable import HeraldPhone

@Suite struct PresenterTests {
    private func bundle() -> AppBundle {
        var bundle = AppBundle()
        bundle.wakesInBackground = true
        bundle.texts = [
            "en": ["HELLO": LocalizedText(format: "Hello %@"), "YES": LocalizedText(format: "Yes")],
            "fr": ["HELLO": LocalizedText(format: "Bonjour %@")],
        ]
        bundle.sounds = ["bell.caf": SoundFile(prefix: []), "song.caf": SoundFile(prefix: Array("ID3-music".utf8))]
        bundle.categories = [
            "INVITATION": NotificationCategory(
                identifier: "INVITATION",
                actions: (1...6).map { number in
                    NotificationCategory.Action(identifier: "\(number)", title: number == 1 ? "YES" : "\(number)")
                }
            )
        ]
        return bundle
    }

    private func present(
        _ payload: String,
        _ pushType: PushType = .alert,
        collapseID: String? = nil,
        bundle: AppBundle? = nil,
        change: (inout DeviceSituation) -> Void = { _ in }
    ) -> Presentation {
        var situation = DeviceSituation(now: 1000)
        change(&situation)
        let notification = IncomingNotification(
            payload: Array(payload.utf8),
            pushType: pushType,
            collapseID: collapseID
        )
        return Presenter(bundle: bundle ?? self.bundle()).presentation(of: notification, in: situation)
    }

    @Test func `each setting suppresses its own part, with a reason`() {
        let payload = #"{"aps":{"alert":"x","badge":2,"sound":"bell.caf"}}"#
        let silent = present(payload) { $0.settings.sounds = false }
        #expect(silent.isShown && silent.badge == 2 && silent.sound == nil && silent.reasons == [.soundsOff])
        let hidden = present(payload) { $0.settings.alerts = false }
        #expect(!hidden.isShown && hidden.badge == 2 && hidden.sound?.name == "bell.caf")
        #expect(hidden.reasons == [.alertsOff] && hidden.buttons.isEmpty)
        let plain = present(payload) { $0.settings.badges = false }
        #expect(plain.isShown && plain.badge == nil && plain.reasons == [.badgesOff])
    }

    @Test func `the user's style applies to an unlocked screen`() {
        let payload = #"{"aps":{"alert":"x","sound":"bell.caf"}}"#
        let usual = present(payload)
        #expect(usual.style == .banner && usual.place == .banner)
        let alert = present(payload) { $0.style = .alert }
        #expect(alert.style == .alert && alert.place == .banner && alert.buttons == ["Close", "View"])
        let quiet = present(payload) { $0.style = AlertStyle.none }
        #expect(quiet.place == .list && quiet.reasons == [.noStyle] && quiet.sound?.name == "bell.caf")
        let locked = present(payload) {
            $0.style = AlertStyle.none
            $0.isLocked = true
        }
        #expect(locked.place == .lockScreen && locked.reasons.isEmpty)
        #expect(present(#"{"aps":{"badge":1}}"#).style == nil)
    }

    @Test func `categories that the app registered replace those of its bundle`() {
        let category = NotificationCategory(
            identifier: "OTHER",
            actions: [NotificationCategory.Action(identifier: "yes", title: "YES")]
        )
        func shown(_ name: String) -> Presentation {
            present(#"{"aps":{"alert":"x","category":"\#(name)"}}"#) { $0.categories = [category] }
        }
        #expect(shown("OTHER").actions.map(\.title) == ["Yes"] && shown("INVITATION").actions.isEmpty)
    }

    @Test func `on a locked screen there is a slider, also for the app that was in the foreground`() {
        let locked = present(#"{"aps":{"alert":{"body":"x","action-loc-key":"YES"}}}"#) {
            $0.isLocked = true
            $0.app = .foreground
        }
        #expect(locked.place == .lockScreen && locked.slider == "Yes" && locked.buttons.isEmpty)
        #expect(!locked.isDeliveredToApp)
    }

    @Test func `an action key that is null or unknown`() {
        #expect(present(#"{"aps":{"alert":{"body":"x","action-loc-key":null}}}"#).buttons == ["Close", "View"])
        #expect(present(#"{"aps":{"alert":{"body":"x","action-loc-key":"NO"}}}"#).buttons == ["Close", "NO"])
    }

    @Test func `a key has precedence over the literal text if it exists`() {
        let both = #"{"aps":{"alert":{"body":"literal","loc-key":"KEY","loc-args":["Bob",3]}}}"#
        #expect(present(both.replacing("KEY", with: "HELLO")).alert?.body == "Hello Bob")
        #expect(present(both.replacing("KEY", with: "NONE")).alert?.body == "literal")
        #expect(present(#"{"aps":{"alert":{"loc-key":"YES"}}}"#) { $0.languages = ["fr"] }.alert?.body == "Yes")
    }

    @Test func `a category has its buttons, four at most, with titles from the bundle`() {
        let shown = present(#"{"aps":{"alert":"x","category":"INVITATION"}}"#)
        #expect(shown.actions.map(\.title) == ["Yes", "2", "3", "4"])
        #expect(present(#"{"aps":{"alert":"x","category":"OTHER"}}"#).actions.isEmpty)
    }

    @Test func `sounds: which is played`() {
        #expect(present(#"{"aps":{"alert":"x","sound":"default"}}"#).sound?.name == "default")
        #expect(present(#"{"aps":{"alert":"x","sound":"song.caf"}}"#).reasons == [.unplayableSound])
        #expect(present(#"{"aps":{"sound":"bell.caf"}}"#).sound?.name == "bell.caf")
        #expect(present(#"{"aps":{"alert":"x","sound":5}}"#).sound == nil)
        var bundle = bundle()
        bundle.containerSounds["own.wav"] = SoundFile(prefix: [])
        #expect(present(#"{"aps":{"sound":"own.wav"}}"#, bundle: bundle).sound?.name == "own.wav")
    }

    @Test func `only critical sounds override the mute switch and a Focus`() {
        let usual = #"{"aps":{"alert":"x","sound":"default"}}"#
        let critical = #"{"aps":{"alert":"x","sound":{"critical":1,"volume":7}}}"#
        #expect(present(usual) { $0.isMuted = true }.reasons == [.muted])
        let focused = present(usual) { $0.isFocused = true }
        #expect(focused.place == .list && focused.reasons == [.focused])
        let loud = present(critical) { ($0.isMuted, $0.isFocused) = (true, true) }
        #expect(loud.sound?.isCritical == true && loud.sound?.volume == 1)
        #expect(loud.place == .banner && loud.interruption == "critical")
    }

    @Test func `interruption levels`() {
        let passive = present(#"{"aps":{"alert":"x","sound":"default","interruption-level":"passive"}}"#)
        #expect(passive.place == .list && passive.sound == nil && passive.reasons == [.passive])
        let urgent = present(#"{"aps":{"alert":"x","interruption-level":"time-sensitive"}}"#) { $0.isFocused = true }
        #expect(urgent.place == .banner)
        #expect(present(#"{"aps":{"alert":"x","interruption-level":"shouting"}}"#).interruption == "active")
    }

    @Test func `the launch image falls back three times`() {
        let payload = #"{"aps":{"alert":{"body":"x","launch-image":"Special"}}}"#
        var bundle = bundle()
        #expect(present(payload, bundle: bundle).launchImage == .standard)
        bundle.launchImageFile = "Launch.png"
        #expect(present(payload, bundle: bundle).launchImage == .informationFile("Launch.png"))
        #expect(present(payload, bundle: bundle) { $0.hasSnapshot = true }.launchImage == .snapshot)
        bundle.images = ["Special.png", "Special.de.png"]
        #expect(present(payload, bundle: bundle) { $0.hasSnapshot = true }.launchImage == .named("Special.png"))
    }

    @Test func `a silent push wakes the app if state and bundle allow it`() {
        let payload = #"{"aps":{"content-available":1}}"#
        #expect(present(payload, .background).backgroundSeconds == 30)
        #expect(present(payload, .background).reasons == [.silent])
        #expect(present(payload, .background) { $0.app = .notRunning }.backgroundSeconds == 30)
        let ended = present(payload, .background) { $0.app = .endedByUser }
        #expect(ended.backgroundSeconds == nil && ended.reasons == [.endedByUser, .silent])
        let awake = present(payload, .background) { $0.app = .foreground }
        #expect(awake.backgroundSeconds == nil && awake.isDeliveredToApp)
        var bundle = bundle()
        bundle.wakesInBackground = false
        #expect(present(payload, .background, bundle: bundle).reasons.contains(.noBackgroundMode))
        let both = present(#"{"aps":{"alert":"x","content-available":1}}"#)
        #expect(both.isShown && both.backgroundSeconds == 30 && both.reasons.isEmpty)
    }

    @Test func `a service extension needs an alert`() {
        #expect(present(#"{"aps":{"alert":"x","mutable-content":1}}"#).extensionSeconds == 30)
        let bare = present(#"{"aps":{"badge":1,"mutable-content":1}}"#)
        #expect(bare.extensionSeconds == nil && bare.reasons.contains(.nothingToChange))
    }

    @Test func `a collapse identifier replaces the notification that has it`() {
        let shown = [
            ShownNotification(id: "1", collapseID: "score"), ShownNotification(id: "2"),
            ShownNotification(id: "3", collapseID: "other"),
        ]
        let payload = #"{"aps":{"alert":"2:1"}}"#
        #expect(present(payload, collapseID: "score") { $0.shown = shown }.replaces == "1")
        #expect(present(payload, collapseID: "new") { $0.shown = shown }.replaces == nil)
        #expect(present(payload) { $0.shown = shown }.replaces == nil)
    }

    @Test func `other push types go to the app's extension`() {
        let call = present(#"{"caller":"Bob"}"#, .voip)
        #expect(!call.isShown && call.isDeliveredToApp && call.reasons == [.notShown])
    }

    @Test(arguments: [
        #"{"aps":{"alert":""}}"#, #"{"aps":{"alert":{}}}"#, #"{"aps":{"alert":null}}"#,
        #"{"aps":{"alert":{"body":{"loc-key":"HELLO"}}}}"#,
    ])
    func `without a text nothing is shown`(payload: String) {
        #expect(present(payload).reasons == [.noText])
    }
}

extension PresenterTests {
    private static let start =
        #"{"aps":{"event":"start","timestamp":900,"attributes-type":"Game","attributes":{},"content-state":{"n":1},"#
        + #""alert":{"title":{"loc-key":"HELLO","loc-args":["Bob"]},"body":"x","sound":"bell.caf"}}}"#

    @Test func `a Live Activity starts with an alert, whose texts are keys`() {
        let started = present(Self.start, .liveactivity)
        #expect(started.activity?.event == "start" && started.activity?.state == .active)
        #expect(started.activity?.contentState == .object(["n": .number(1)]))
        #expect(started.alert?.title == "Hello Bob" && started.sound?.name == "bell.caf")
        let bare = #"{"aps":{"event":"start","timestamp":900,"content-state":{}}}"#
        #expect(present(bare, .liveactivity).reasons == [.incompleteStart])
    }

    @Test func `an update changes the activity, unless its content is newer`() {
        let update = #"{"aps":{"event":"update","timestamp":900,"content-state":{},"stale-date":DATE}}"#
        func present(_ date: String, shown: Double?) -> Presentation {
            self.present(update.replacing("DATE", with: date), .liveactivity) {
                $0.activity = shown.map { ShownActivity(timestamp: $0) }
            }
        }
        #expect(present("1100", shown: 800).activity?.state == .active)
        #expect(present("1000", shown: 800).activity?.state == .stale)
        #expect(present("1100", shown: 901).reasons == [.olderThanShown])
        #expect(present("1100", shown: nil).reasons == [.noActivity])
    }

    @Test func `an end stays for four hours, until its date, or not at all`() {
        func end(_ more: String) -> Presentation.Activity? {
            present(#"{"aps":{"event":"end","timestamp":900\#(more)}}"#, .liveactivity) {
                $0.activity = ShownActivity(timestamp: 0)
            }.activity
        }
        #expect(end("")?.state == .ended && end("")?.dismissalDate == 1000 + 4 * 3600)
        #expect(end(#","dismissal-date":1500"#)?.dismissalDate == 1500)
        #expect(end(#","dismissal-date":999"#)?.state == .dismissed)
        #expect(present(#"{"aps":{"event":"stop"}}"#, .liveactivity).reasons == [.badEvent])
    }
}
