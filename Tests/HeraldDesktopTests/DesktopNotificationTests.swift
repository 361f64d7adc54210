import HeraldModel
import HeraldPhone
import Testing

@testable import HeraldDesktop

@Suite struct DesktopNotificationTests {
    private func notice(
        _ capabilities: Set<String> = ["actions", "body", "body-markup"],
        _ change: (inout PhoneSnapshot.Notification) -> Void
    ) throws -> DesktopNotification {
        var notification = PhoneSnapshot.Notification(
            id: "n1",
            topic: try #require(Topic("com.example.chat")),
            app: "Chat",
            time: 1000,
            place: .lockScreen
        )
        change(&notification)
        return DesktopNotification(
            notification,
            icon: nil,
            sound: .none,
            words: DeviceWords(for: ["de"]),
            capabilities: capabilities
        )
    }

    @Test func `texts are the title, and the others below it`() throws {
        let notice = try notice {
            $0.title = "Dinner"
            $0.subtitle = "at eight"
            $0.body = "Bring wine"
        }
        #expect((notice.app, notice.summary, notice.body) == ("Chat", "Dinner", "at eight\nBring wine"))
    }

    @Test func `without a title it is the app's name`() throws {
        let notice = try notice {
            $0.title = ""
            $0.body = "Bring wine"
        }
        #expect((notice.summary, notice.body) == ("Chat", "Bring wine"))
    }

    @Test func `nothing in a text is markup`() throws {
        let text = "<b>1 & 2</b> <img src=\"file:///etc/passwd\"> &amp;"
        let escaped = "&lt;b&gt;1 &amp; 2&lt;/b&gt; &lt;img src=\"file:///etc/passwd\"&gt; &amp;amp;"
        #expect(try notice { $0.body = text }.body == escaped)
        #expect(try notice(["body"]) { $0.body = text }.body == text)
        // A summary is never markup.
        #expect(try notice { $0.title = text }.summary == text)
    }

    @Test func `a service without bodies gets all in one line`() throws {
        let notice = try notice([]) {
            $0.title = "Dinner"
            $0.body = "Bring wine"
        }
        #expect((notice.summary, notice.body, notice.buttons) == ("Dinner: Bring wine", "", []))
    }

    @Test func `control characters and excess are left out`() throws {
        let notice = try notice {
            $0.title = "a\u{0}b\u{1B}c\u{9B}d\ne"
            $0.body = String(repeating: "é", count: 5000)
        }
        #expect(notice.summary == "a b c d\ne")
        #expect(notice.body.count == DesktopNotification.maximumText && notice.body.hasSuffix("é…"))
    }

    private static let urgencies: [(String?, Presentation.Place, DesktopNotification.Urgency)] = [
        ("passive", .list, .low), ("active", .lockScreen, .normal),
        ("active", .banner, .normal), ("active", .list, .low), ("time-sensitive", .banner, .critical),
        ("critical", .lockScreen, .critical), (nil, .banner, .normal),
    ]

    @Test(arguments: urgencies)
    func `urgency follows the interruption level`(
        level: String?,
        place: Presentation.Place,
        urgency: DesktopNotification.Urgency
    ) throws {
        let notice = try notice {
            $0.interruption = level
            $0.place = place
        }
        #expect(notice.urgency == urgency)
    }

    @Test func `the button that opens is named as on the device`() throws {
        #expect(try notice { _ in }.buttons == [.init(key: "default", label: "Ansehen")])
        #expect(try notice { $0.buttons = ["Close", "Play"] }.buttons == [.init(key: "default", label: "Play")])
        #expect(try notice { $0.slider = "play" }.buttons == [.init(key: "default", label: "play")])
    }
}
