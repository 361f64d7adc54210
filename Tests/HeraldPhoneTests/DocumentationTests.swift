import Foundation
import HeraldJSON
import HeraldModel
import HeraldPhone
import Testing

/// The app of docs/apps.md: compared with the page, and run on a device.
@Suite(.timeLimit(.minutes(10))) struct DocumentationTests {
    @Test func `the page has this app, word for word`() throws {
        func text(_ path: String) throws -> String {
            let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
                .deletingLastPathComponent()
            return try String(contentsOf: root.appendingPathComponent(path), encoding: .utf8)
        }
        let source = try text("Tests/HeraldPhoneTests/DocumentationTests.swift")
        let blocks = try text("docs/apps.md").components(separatedBy: "```swift\n").dropFirst()
            .compactMap { $0.components(separatedBy: "```").first }
        #expect(blocks.count == 5)
        // The first is a manifest; the second begins with imports and the attribute, which a test cannot have.
        for block in blocks.dropFirst() {
            let code = block.components(separatedBy: "@main\n").last ?? block
            #expect(source.contains(code), "not compiled: \(code)")
        }
    }

    @Test func `the tea is ready after three minutes, and another cup after six`() async throws {
        let folder = try TemporaryFolder()
        let topic = try #require(Topic("com.example.tea"))
        try await withVirtualDevice(folder: folder.path + "/device") { device in
            try await withThrowingTaskGroup(of: Void.self) { group in
                defer { group.cancelAll() }
                // The device listens once it runs.
                for await snapshot in await device.agent.snapshots() where snapshot.connection.state == .connected {
                    break
                }
                group.addTask { try await TeaTimer.run(topic, socket: folder.path + "/device/run/agent.sock") }
                for minutes in [3.0, 6.0] {
                    for await snapshot in await device.agent.snapshots() where snapshot.apps.first?.pending.count == 1 {
                        break
                    }
                    try await device.agent.perform(.permit(topic, [.alert, .sound]))
                    var switches = PhoneSwitches()
                    switches.clock = minutes * 60 + 1
                    try await device.agent.perform(.set(switches))
                    var shown: PhoneSnapshot.Notification?
                    for await snapshot in await device.agent.snapshots() {
                        shown = snapshot.notifications.first
                        if shown != nil { break }
                    }
                    #expect(shown?.body == "Your tea is ready" && shown?.actions.map(\.title) == ["Another cup"])
                    try await device.agent.perform(.act(id: shown?.id ?? "", action: "AGAIN", text: nil))
                }
            }
        }
    }
}

struct TeaTimer {
    static func main() async throws {
        guard let topic = Topic("com.example.tea") else { return }
        try await run(topic, socket: "herald-device/run/agent.sock")
    }

    static func run(_ topic: Topic, socket: String) async throws {
        try await LocalApp.run(topic, wants: [.alert, .sound], socket: socket) { app in
            let again = NotificationCategory.Action(identifier: "AGAIN", title: "Another cup")
            try await app.setCategories([NotificationCategory(identifier: "TEA", actions: [again])])
            try await brew(app)
            for await event in app.events { try await take(event, app) }
        }
    }

    static func brew(_ app: LocalApp) async throws {
        let aps: JSON.Object = [
            "alert": .string("Your tea is ready"), "sound": .string("default"), "category": .string("TEA"),
        ]
        let payload = JSON.object(["aps": .object(aps)])
        try await app.schedule(LocalNotification(id: "tea", payload: payload, trigger: .after(.seconds(180))))
    }

    static func take(_ event: LocalApp.Event, _ app: LocalApp) async throws {
        switch event {
        case .permission(let kinds): print("may use:", kinds.map(\.rawValue).sorted())
        case .token(let token, _): print("for the provider:", token.hex, try await app.languages())
        case .notification(let notification) where notification.action == "AGAIN": try await brew(app)
        case .notification(let notification) where notification.cause == .background:
            if let id = notification.id { try await app.done(id, .noData) }
        default: break
        }
    }
}
