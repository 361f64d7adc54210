import HeraldModel
import Testing

@testable import HeraldPhone

@Suite struct PayloadCheckTests {
    private func findings(
        _ payload: String,
        _ pushType: PushType = .alert,
        bundle: AppBundle? = nil
    ) -> [String] {
        PayloadCheck(Array(payload.utf8), pushType: pushType, bundle: bundle, now: 1_800_000_000).findings.map(
            \.message
        )
    }

    private func aps(_ members: String) -> String { #"{"aps":{\#(members)}}"# }

    @Test(
        arguments: [
            #""alert":"x""#, #""alert":{"title":"x","subtitle":"y","body":"z"},"badge":0,"sound":"default""#,
            #""alert":"x","content-available":1,"mutable-content":1,"thread-id":"t","category":"c""#,
            #""alert":{"loc-key":"K","loc-args":["a"],"title-loc-key":null},"sound":{"critical":1,"volume":0.5}"#,
            #""alert":"x","interruption-level":"passive","relevance-score":1,"target-content-id":"a""#,
        ]
    )
    func `a correct payload has no findings`(members: String) {
        #expect(findings(aps(members)) == [])
    }

    @Test(
        arguments: [
            (#""allert":"x","badge":1"#, "aps.allert is not a known key: did you mean alert?"),
            (
                #""content_available":1,"badge":1"#,
                "aps.content_available is not a known key: did you mean content-available?"
            ),
            (
                #""contentAvailable":1,"badge":1"#,
                "aps.contentAvailable is not a known key: did you mean content-available?"
            ),
            (#""badge":1,"baddge":2"#, "aps.baddge is not a known key: did you mean badge?"),
            (#""title":"x","badge":1"#, "aps.title is ignored by the system: did you mean aps.alert.title?"),
            (
                #""alert":{"body":"x","action-lock-key":"A"}"#,
                "aps.alert.action-lock-key is not a known key: did you mean action-loc-key?"
            ),
            (#""alert":{"body":"x","badge":1}"#, "aps.alert.badge is ignored by the system: did you mean aps.badge?"),
            (
                #""alert":{"title":"\#(String(repeating: "x", count: 41))","body":"x"}"#,
                "aps.alert.title has 41 characters: a watch shows a title only briefly, and 40 can be read at a glance"
            ),
            (#""alert":{}"#, "aps.alert has neither a text nor a key: nothing is shown"),
            (#""alert":"""#, "aps.alert is empty: nothing is shown"),
            (#""alert":{"body":"x","loc-args":["a"]}"#, "there are arguments without aps.alert.loc-key"),
            (#""alert":{"loc-key":"x","loc-args":[1]}"#, "aps.alert.loc-args must be an array of strings, or null"),
            (#""alert":{"body":{"loc-key":"K"},"title":"x"}"#, "aps.alert.body must be a string"),
            (#""badge":-1"#, "aps.badge must be a whole number from 0 to 999999999"),
            (#""badge":1e400"#, "aps.badge must be a whole number from 0 to 999999999"),
            (#""badge":9007199254740993"#, "aps.badge must be a whole number from 0 to 999999999"),
            (#""alert":"x","relevance-score":1e400"#, "aps.relevance-score must be from 0 to 1"),
            (#""alert":"x","timestamp":1e400"#, "aps.timestamp must be UNIX seconds, in the years 1 to 9999"),
            (#""alert":"x","content-available":true"#, "aps.content-available must be the number 1"),
            (#""alert":"x","mutable-content":2"#, "aps.mutable-content has no meaning unless it is 1"),
            (#""badge":1,"mutable-content":1"#, "a service extension runs only for a push with an alert"),
            (#""badge":1,"category":"c""#, "the buttons of a category need an alert"),
            (#""content-available":1"#, "it is silent: send it with push type background and priority 5"),
            (#""thread-id":"t""#, "it has nothing for the user: an alert push needs alert, badge or sound"),
            (
                #""alert":"x","sound":"tune.mp3""#,
                "sound tune.mp3 is not in a playable format: it must be an aiff, wav or caf file"
            ),
            (#""alert":"x","sound":{"volume":2}"#, "aps.sound.volume must be from 0 to 1"),
            (#""alert":"x","sound":{"critcal":1}"#, "aps.sound.critcal is not a known key: did you mean critical?"),
            (
                #""alert":"x","interruption-level":"urgent""#,
                "urgent is none of passive, active, time-sensitive and critical"
            ),
            (#""alert":"x","relevance-score":3"#, "aps.relevance-score must be from 0 to 1"),
            (
                #""alert":"x","alert":"y""#,
                "the key alert appears more than once in one dictionary: the last one counts"
            ),
        ]
    )
    func `probable mistakes are findings`(members: String, message: String) {
        #expect(findings(aps(members)) == [message])
    }

    @Test func `a drill in the payload is a warning, because only a service for tests heeds it`() {
        #expect(
            findings(#"{"aps":{"badge":1},"herald":{"drill":{"reason":"Forbidden"}}}"#).first?.contains(
                "payload-drills"
            ) == true
        )
        #expect(findings(#"{"aps":{"badge":1},"herald":{"tag":"t","drill":null}}"#) == [])
    }

    @Test(arguments: [
        (#""herald":[{"drill":{"reason":"Forbidden"}}]"#, "herald must be a dictionary, like {\"drill\":{…}}"),
        (#""herald":"drill""#, "herald must be a dictionary, like {\"drill\":{…}}"),
        (#""herald":{"dril":{"reason":"Forbidden"}}"#, "herald.dril is not a known key: did you mean drill?"),
        (#""herald":{"Tag":"x"}"#, "herald.Tag is not a known key: did you mean tag?"),
        (#""herald":{"tag":5}"#, "herald.tag must be a string of 1 to 64 characters"),
        (#""herald":{"tag":""}"#, "herald.tag must be a string of 1 to 64 characters"),
        (#""Herald":{"drill":{"reason":"Forbidden"}}"#, "Herald.drill has no effect: did you mean herald.drill?"),
    ])
    func `what Herald cannot read of its own object is a warning`(member: String, words: String) {
        #expect(findings(#"{"aps":{"badge":1},\#(member)}"#) == [words])
    }

    @Test func `other members of the object are the app's own`() {
        #expect(findings(#"{"aps":{"badge":1},"herald":{"tag":"t","of":"war","dril":null}}"#) == [])
    }

    @Test func `a dictionary with only a body is a note, because the documents disagree`() {
        let check = PayloadCheck(Array(aps(#""alert":{"body":"x"}"#).utf8), pushType: .alert, now: 0)
        #expect(check.findings.map(\.severity) == [.note] && check.isAccepted)
        #expect(check.findings.first?.place == "aps.alert")
    }

    @Test(arguments: SilentPayload.all)
    func `the check takes for silent what the service takes for silent`(_ vector: SilentPayload) {
        for type in [nil, PushType.alert] {
            let check = PayloadCheck(Array(vector.payload.utf8), pushType: type, now: 0)
            #expect(check.findings.contains { $0.message.hasPrefix("it is silent") } == vector.silent, "\(vector.why)")
        }
    }

    @Test(arguments: [
        (#""content-available":1,"alert":"x""#, "alert"), (#""badge":0,"content-available":1.0"#, "badge"),
        (#""alert":"x","sound":"default","content-available":1"#, "alert and sound"),
    ])
    func `without a push type, a note says that the documents disagree about waking alerts`(
        members: String,
        keys: String
    ) {
        let payload = Array(aps(members).utf8)
        let found = PayloadCheck(payload, pushType: nil, now: 0).findings
        #expect(found.map(\.severity) == [.note] && found.first?.place == "aps.content-available")
        #expect(found.first?.message.hasPrefix("beside \(keys) it is not silent") == true)
        #expect(PayloadCheck(payload, pushType: .alert, now: 0).findings.isEmpty)
    }

    @Test func `a long title of the bundle is a warning in its languages`() {
        var bundle = AppBundle()
        bundle.texts = [
            "en": ["T": LocalizedText(format: "%@ plays")],
            "de": ["T": LocalizedText(format: "%@ spielt " + String(repeating: "sehr ", count: 6))],
        ]
        let payload = aps(#""alert":{"title-loc-key":"T","title-loc-args":["Jane"],"body":"x"}"#)
        #expect(
            findings(payload, bundle: bundle) == [
                "key T has more than 40 characters in de: a watch shows a title only briefly, and 40 can be read at a glance"
            ]
        )
    }

    @Test(
        arguments: [
            ("DELETE_MAIL", true), ("deleteMail", true), ("Delete mail", true), ("Alles löschen", true),
            ("メールを削除", true), ("UNDELETE", false), ("Deleted", false), ("reply", false), ("", false),
        ]
    )
    func `a destructive action is known by a word`(text: String, isDestructive: Bool) {
        #expect(DestructiveActions.looksDestructive(text) == isDestructive)
    }

    @Test func `an action that looks destructive in some language must be marked so`() {
        var bundle = AppBundle()
        bundle.texts = ["en": ["GO": LocalizedText(format: "Remove")], "fr": ["GO": LocalizedText(format: "Ôter")]]
        func action(_ identifier: String, isDestructive: Bool = false) -> NotificationCategory.Action {
            NotificationCategory.Action(
                identifier: identifier,
                title: "GO",
                opensApp: false,
                isDestructive: isDestructive,
                needsUnlocking: false,
                takesText: false
            )
        }
        let message =
            "action away of MAIL looks destructive: mark it with \"destructive\":true, and let the app ask before "
            + "anything is deleted"
        bundle.categories = ["MAIL": NotificationCategory(identifier: "MAIL", actions: [action("away")])]
        #expect(findings(aps(#""alert":"x","category":"MAIL""#), bundle: bundle) == [message])
        #expect(findings(aps(#""alert":"x""#), bundle: bundle) == [])
        #expect(BundleCheck(bundle).findings.map(\.message) == [message])
        bundle.categories = [
            "MAIL": NotificationCategory(identifier: "MAIL", actions: [action("away", isDestructive: true)])
        ]
        #expect(BundleCheck(bundle).findings == [])
    }

    @Test func `Live Activities: required keys, and dates`() {
        let start = findings(aps(#""event":"start""#), .liveactivity)
        for key in ["timestamp", "content-state", "attributes-type", "attributes", "alert"] {
            #expect(start.contains("a Live Activity push that says start needs aps.\(key)"))
        }
        let dates = aps(
            #""event":"update","content-state":{},"timestamp":1700000000,"stale-date":1700000000,"#
                + #""dismissal-date":1800000001000"#
        )
        #expect(
            findings(dates, .liveactivity) == [
                "aps.stale-date is in the past: the Live Activity is outdated at once",
                "aps.dismissal-date must be UNIX seconds; this looks like milliseconds",
                "aps.timestamp is in the past: an update older than the shown content is ignored",
            ]
        )
        let good = #""event":"update","content-state":{},"timestamp":1800000000,"stale-date":1800000100"#
        #expect(findings(aps(good), .liveactivity) == [])
    }

    @Test func `keys are checked in every language of the app`() {
        var bundle = AppBundle()
        bundle.texts = [
            "en": ["K": LocalizedText(format: "%@ and %@"), "D": LocalizedText(format: "%d%% of %@")],
            "fr": ["K": LocalizedText(format: "%@"), "D": LocalizedText(format: "%@ %2$@", isPlural: true)],
            "de": [:],
        ]
        #expect(
            findings(aps(#""alert":{"loc-key":"K","loc-args":["a","b"]}"#), bundle: bundle) == [
                "key K missing in de", "K takes 1 argument (fr), 2 given",
            ]
        )
        #expect(
            findings(aps(#""alert":{"title-loc-key":"D","title-loc-args":["a","b"]}"#), bundle: bundle) == [
                "key D missing in de", "%d in D (en): arguments are texts, write %@, and %% for a percent sign",
                "D (fr) mixes %@ and %1$@: number all of them",
                "D (fr) is a plural: arguments are texts, so the form other is shown",
            ]
        )
        #expect(findings(aps(#""alert":{"loc-key":"K","loc-args":["a","b"]}"#)) == [])
    }

    @Test(
        arguments: [
            (#""who":"mail to jane@example.com please""#, "who (an e-mail address)"),
            (#""pay":"4111 1111 1111 1111""#, "pay (a card number)"),
            (#""pay":4111111111111111"#, "pay (a card number)"),
            (#""tel":"+49 30 1234567""#, "tel (a telephone number)"),
            (#""user-password":"x""#, "user-password (a secret)"),
            (#""a":{"b":["DE89370400440532013000"]}"#, "a.b (an account number)"),
        ]
    )
    func `personal data is a finding`(member: String, message: String) {
        #expect(findings(#"{"aps":{"alert":"x"},\#(member)}"#) == ["looks like personal data: \(message)"])
    }

    @Test(arguments: [#""id":"message123456""#, #""at":1800000000000"#, #""x":"@""#, #""n":"1234567890123456""#])
    func `harmless data is not a finding`(member: String) {
        #expect(findings(#"{"aps":{"alert":"x"},\#(member)}"#) == [])
    }

    @Test func `a refusal has reason and position`() {
        #expect(findings("") == ["the payload is empty: the shortest is {\"aps\":{}}"])
        #expect(
            findings("{\n \"a\":x}") == [
                "the payload is not JSON: line 2, byte 6: a character that is not allowed here"
            ]
        )
        #expect(findings("{\"a\":") == ["the payload is not JSON: line 1, byte 6: it ends too early"])
        #expect(
            findings(#"{"aps":{"alert":"hi",}}"#) == [
                "the payload is not JSON: line 1, byte 22: } after a comma: a key is missing"
            ]
        )
        #expect(findings("[]") == ["the payload must be a JSON object: {\"aps\":{…}}"])
        let wide = "{\"aps\":{\"alert\":\"x\"}," + String(repeating: " ", count: 4096) + "\"a\":1}"
        let huge = "{\"aps\":" + String(repeating: "[", count: 1 << 20)
        #expect(findings(huge) == ["1048583 bytes are more than the 4096 of alert"])
        #expect(findings(wide) == ["4123 bytes are more than the 4096 of alert; without white space it has 27"])
    }

    @Test func `no payload that is cut or changed traps`() {
        let good = Array(
            #"{"aps":{"alert":{"loc-key":"K","loc-args":["\ud83d\ude00"]},"badge":1e3},"a":[{"b":null}]}"#.utf8
        )
        for index in good.indices {
            for byte in [0x22, 0x5C, 0x7B, 0x7D, 0x30, 0xFF] as [UInt8] {
                var bad = good
                bad[index] = byte
                for payload in [bad, Array(bad[..<index])] {
                    _ = PayloadCheck(payload, pushType: .alert, now: 0)
                    let notification = IncomingNotification(payload: payload)
                    _ = Presenter(bundle: nil).presentation(of: notification, in: DeviceSituation(now: 0))
                }
            }
        }
    }
}
