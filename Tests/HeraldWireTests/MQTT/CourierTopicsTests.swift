import HeraldModel
import HeraldWire
import Testing

struct CourierTopicsTests {
    private let chat: Topic

    init() throws {
        chat = try #require(Topic("com.example.chat"))
    }

    @Test func `topic names are read and spelled`() {
        let names: [(String, CourierTopic)] = [
            ("apps/com.example.chat", .notifications(chat)),
            ("apps/com.example.chat/token", .token(chat)),
            ("apps/com.example.chat/settings", .settings(chat)),
            ("device/power", .power),
            ("channels/com.example.chat/dHN-_w==", .channel(bundle: chat, id: "dHN-_w==")),
        ]
        for (name, topic) in names {
            #expect(CourierTopic(name) == topic)
            #expect(topic.name == name)
        }
    }

    @Test func `topic filters are read and spelled`() {
        let filters: [(String, CourierFilter)] = [
            ("apps/com.example.chat", .notifications(chat)),
            ("apps/com.example.chat/token", .token(chat)),
            ("apps/com.example.chat/#", .everything(chat)),
            ("channels/com.example.chat/dHN-_w==", .channel(bundle: chat, id: "dHN-_w==")),
        ]
        for (name, filter) in filters {
            #expect(CourierFilter(name) == filter)
            #expect(filter.name == name)
        }
    }

    static let foreign: [String] = [
        "", "/", "#", "+", "apps", "apps/", "apps//", "/apps/com.example.chat", "apps/com.example.chat/", "apps/+",
        "apps/#",
        "apps/+/token", "apps/com.example.chat/+", "apps/com.example.chat/token/", "apps/com.example.chat/token/x",
        "apps/com.example.chat/Token", "Apps/com.example.chat", "apps/com.example.#", "apps/com example", "apps/.com",
        "apps/com.",
        "apps/com..example", "apps/../token", "apps/com.example.chat\u{301}", "device", "device/power/",
        "device/power/x",
        "device/other", "channels/com.example.chat", "channels/com.example.chat/", "channels/com.example.chat/a b",
        "channels/com.example.chat/#", "channels/com.example.chat/+", "$SYS/broker", "$share/g/apps/com.example.chat",
        " apps/com.example.chat", "apps/com.example.chat ", "\u{FEFF}apps/com.example.chat", "apps/\u{212A}ey",
        "channels/com.example.chat/" + String(repeating: "a", count: 65), "apps/" + String(repeating: "a", count: 201),
    ]

    @Test(arguments: foreign)
    func `[MQTT-4.7.3-4] every other spelling is another topic`(text: String) {
        #expect(CourierTopic(text) == nil)
        #expect(CourierFilter(text) == nil)
    }

    @Test func `topics that devices publish to are not filters`() {
        #expect(CourierFilter("device/power") == nil)
        #expect(CourierFilter("apps/com.example.chat/settings") == nil)
        #expect(CourierTopic("apps/com.example.chat/#") == nil)
    }

    @Test func `the filter of everything matches notifications and token`() {
        #expect(CourierFilter.everything(chat).matchesNotifications && CourierFilter.everything(chat).matchesToken)
        #expect(
            CourierFilter.notifications(chat).matchesNotifications && !CourierFilter.notifications(chat).matchesToken
        )
        #expect(!CourierFilter.token(chat).matchesNotifications && CourierFilter.token(chat).matchesToken)
        #expect(Set(CourierFilter.all(of: chat)).count == 3)
    }

    @Test(arguments: [
        ("a/#/b", CourierFilterFault.malformed), ("a#", .malformed), ("a/b#", .malformed), ("#/", .malformed),
        ("a+/b", .malformed),
        ("+a", .malformed), ("##", .malformed), ("++", .malformed), ("$share/g", .malformed), ("$share/g/", .malformed),
        ("$share//a", .malformed), ("$share/+/a", .malformed), ("$share/#", .malformed), ("$share", .malformed),
        ("$share/g/a", .shared), ("$share/g/#", .shared), ("$share/g//", .malformed), ("#", .foreign), ("+", .foreign),
        ("+/+/#", .foreign),
        ("a//b", .foreign), ("/", .foreign), ("$SYS/#", .foreign), ("apps/com example", .foreign),
    ])
    func `[MQTT-4.7.1-1] [MQTT-4.7.1-2] [MQTT-4.8.2-1] a refused filter has its fault`(
        filter: String,
        fault: CourierFilterFault
    ) {
        #expect(CourierFilterFault(filter) == fault)
    }
}
