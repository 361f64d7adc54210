import Foundation
import HeraldDevice
import HeraldJSON
import HeraldModel
import Testing

@testable import HeraldPhone

/// An app on the socket as it plays the user and reads the screen.
@Suite(.timeLimit(.minutes(10))) struct LocalDeviceTests {
    private let topic = PhoneKit.topic

    /// A device with the app, which is on its socket as long as `body` runs.
    private func withDevice(_ body: @Sendable (VirtualDevice, String) async throws -> Void) async throws {
        let folder = try TemporaryFolder()
        try await withVirtualDevice(folder: folder.path + "/device") { device in
            // The device listens once it runs.
            for await snapshot in await device.agent.snapshots() where snapshot.connection.state == .connected { break }
            try await body(device, folder.path + "/device/run/agent.sock")
        }
    }

    @Test func `an app sets its badge, plays the user and reads the screen`() async throws {
        try await withDevice { device, socket in
            try await LocalApp.run(topic, socket: socket) { app in
                try await app.device.perform(.permit(topic, [.alert, .badge]))
                try await app.setBadge(3)
                await #expect(throws: DeviceError.self) { try await app.setBadge(-1) }
                let id = NotificationID(high: 0, low: 1)
                _ = try await device.receive(Array(#"{"aps":{"alert":"a"}}"#.utf8), for: topic, id: id)
                let record = try await app.device.displayRecord(of: id)
                let snapshot = try await app.device.snapshot()
                #expect(record.body == "a" && snapshot.apps.first?.badge == 3 && snapshot.device == "virtual")
                await #expect(throws: DeviceError.self) {
                    try await app.device.displayRecord(of: NotificationID(high: 9, low: 9))
                }
                // On the socket, `id` is the number of the request.
                try await app.device.perform(.tap(id: try #require(snapshot.notifications.first).id))
                var events = app.events.makeAsyncIterator()
                #expect(await events.next() == .permission([.alert, .badge]))
                guard case .notification(let opened)? = await events.next() else {
                    Issue.record("no notification")
                    return
                }
                #expect(opened.cause == .opened && opened.state == .foreground && opened.id == id)
            }
        }
    }

    @Test(arguments: [501, 600]) func `a request that cannot be read is refused, and not waited for`(
        depth: Int
    ) async throws {
        let deep = (1..<depth).reduce(JSON.array([])) { inner, _ in .array([inner]) }
        let payload = JSON.object(["aps": .object(["alert": .string("x")]), "d": deep])
        try await withDevice { _, socket in
            try await LocalApp.run(topic, socket: socket) { app in
                let error = await #expect(throws: DeviceError.self) {
                    try await app.schedule(LocalNotification(id: "n", payload: payload, trigger: .after(.seconds(60))))
                }
                #expect(error?.code == .notPossible)
            }
        }
    }

    @Test func `a watcher hears of changes, and an app that is replaced of that`() async throws {
        try await withDevice { device, socket in
            try await LocalApp.run(topic, socket: socket) { app in
                var events = app.events.makeAsyncIterator()
                try await app.device.watch()
                try await device.agent.perform(.lock)
                var isLocked = false
                while !isLocked, case .device(let snapshot)? = await events.next() { isLocked = snapshot.locked }
                #expect(isLocked)
                try await LocalApp.run(topic, socket: socket) { _ in }
                var event = await events.next()
                while case .device? = event { event = await events.next() }
                #expect(event == .replaced)
            }
        }
    }

    @Test func `an app that was away hears of the user's responses when it registers again`() async throws {
        try await withDevice { device, socket in
            let payload = Array(#"{"aps":{"alert":"a","category":"C"}}"#.utf8)
            try await LocalApp.run(topic, socket: socket) { app in
                let buttons = ["X", "Y"].map { NotificationCategory.Action(identifier: $0, title: $0) }
                try await app.setCategories([NotificationCategory(identifier: "C", actions: buttons)])
                try await app.device.perform(.permit(topic, [.alert]))
            }
            // The agent has seen the end of the connection.
            for await snapshot in await device.agent.snapshots() where snapshot.apps.first?.state == .notRunning {
                break
            }
            for button in ["X", nil, "Y"] {
                _ = try await device.receive(payload, for: topic)
                let shown = try #require(await device.agent.snapshot().notifications.first)
                if let button {
                    try await device.agent.perform(.act(id: shown.id, action: button, text: nil))
                } else {
                    try await device.agent.perform(.tap(id: shown.id))
                    try await device.agent.perform(.home)
                }
            }
            for expected in [["X", "", "Y"], []] {
                try await LocalApp.run(topic, socket: socket) { app in
                    _ = try await app.languages()
                    var heard: [String] = []
                    try await app.device.watch()
                    reading: for await event in app.events {
                        switch event {
                        case .notification(let response): heard.append(response.action ?? "")
                        case .device: break reading
                        default: break
                        }
                    }
                    #expect(heard == expected)
                }
            }
        }
    }

    @Test func `of many responses, the newest are kept`() throws {
        var kit = try PhoneKit()
        let limit = kit.phone.limits.unheardResponses
        _ = try kit.phone.appConnected(PhoneKit.topic, wants: nil, kit.now)
        _ = kit.phone.appDisconnected(PhoneKit.topic, kit.now)
        for _ in 0...limit {
            kit.receive(#"{"aps":{"alert":"a"}}"#)
            let shown = try #require(kit.phone.snapshot(kit.now).notifications.first)
            _ = try kit.phone.perform(.tap(id: shown.id), kit.now)
            _ = try kit.phone.perform(.home, kit.now)
        }
        let effects = try kit.phone.appConnected(PhoneKit.topic, wants: nil, kit.now)
        let heard = effects.filter { if case .notifyApp(_, .notification) = $0 { true } else { false } }
        #expect(heard.count == limit)
    }
}
