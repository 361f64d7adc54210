import Foundation
import HeraldDevice
import HeraldJSON
import HeraldModel
import Testing

@testable import HeraldPhone

/// The driver: files, programs, the socket, and what a crash leaves.
@Suite(.timeLimit(.minutes(10))) struct DeviceAgentTests {
    private let all = Set(NotificationKind.allCases)

    private func agent(_ folder: TemporaryFolder, _ limits: ProgramLimits = .patient) throws -> DeviceAgent {
        try DeviceAgent(
            connection: DetachedConnection(),
            device: "d1",
            service: "localhost:5223",
            folder: try AgentFolder(folder.path + "/device"),
            clock: MachineClock(),
            programLimits: limits
        )
    }

    /// A bundle with scripts as programs.
    private func bundle(_ folder: TemporaryFolder, _ programs: [String: String] = [:]) throws -> String {
        let path = folder.path + "/app"
        try FileManager.default.createDirectory(atPath: path + "/Programs", withIntermediateDirectories: true)
        let plist: [String: Any] = [
            "CFBundleIdentifier": PhoneKit.topic.name, "CFBundleName": "Test",
            "UIBackgroundModes": ["remote-notification"],
        ]
        try PropertyListSerialization.data(fromPropertyList: plist, format: .binary, options: 0)
            .write(to: URL(fileURLWithPath: path + "/Info.plist"))
        for (name, script) in programs {
            let file = "\(path)/Programs/\(name)"
            try Data("#!/bin/sh\n\(script)\n".utf8).write(to: URL(fileURLWithPath: file))
            try FileManager.default.setAttributes([.posixPermissions: 0o755], ofItemAtPath: file)
        }
        return path
    }

    private func notification(_ number: UInt64, _ payload: String) -> ReceivedNotification {
        ReceivedNotification(
            topic: PhoneKit.topic,
            payload: Array(payload.utf8),
            id: NotificationID(high: 0, low: number),
            pushType: payload.contains("content-available") ? .background : .alert,
            priority: nil,
            collapseID: nil,
            expiresIn: nil,
            isRepeated: false
        )
    }

    @Test func `what was shown is there after a crash and a repeated one is not shown again`() async throws {
        let folder = try TemporaryFolder()
        let path = try bundle(folder)
        do {
            let first = try agent(folder)
            try await first.install(bundle: path, allow: all)
            try await first.receive(notification(1, #"{"aps":{"alert":"a","badge":2}}"#))
            // Nothing is said at the end: what is durable is all that there is.
        }
        let second = try agent(folder)
        try await second.receive(notification(1, #"{"aps":{"alert":"a","badge":2}}"#))
        let snapshot = await second.snapshot()
        #expect(snapshot.notifications.count == 1 && snapshot.apps.first?.badge == 2)
        #expect(await second.displayRecord(NotificationID(high: 0, low: 1).description)?.body == "a")
    }

    @Test func `a crash between record and state shows it once`() async throws {
        let folder = try TemporaryFolder()
        let path = try bundle(folder)
        var before = Data()
        let state = URL(fileURLWithPath: folder.path + "/device/state.json")
        do {
            let first = try agent(folder)
            try await first.install(bundle: path, allow: all)
            before = try Data(contentsOf: state)
            try await first.receive(notification(1, #"{"aps":{"alert":"a"}}"#))
        }
        // As if it had been killed after the record, and in the middle of the next one.
        try before.write(to: state)
        let saw = try FileHandle(forWritingTo: URL(fileURLWithPath: folder.path + "/device/shown.jsonl"))
        try saw.seekToEnd()
        try saw.write(contentsOf: Data(#"{"apns_id":"#.utf8))
        try saw.close()
        let second = try agent(folder)
        try await second.receive(notification(1, #"{"aps":{"alert":"a"}}"#))
        try await second.receive(notification(2, #"{"aps":{"alert":"b"}}"#))
        #expect(await second.snapshot().notifications.map(\.body) == ["b", "a"])
        let lines = try String(contentsOf: URL(fileURLWithPath: folder.path + "/device/shown.jsonl"), encoding: .utf8)
        for line in lines.split(separator: "\n") {
            _ = try JSON.decode(DisplayRecord.self, from: Array(line.utf8))
        }
    }

    @Test func `what cannot be kept did not happen`() async throws {
        let folder = try TemporaryFolder()
        let path = try bundle(folder)
        let agent = try agent(folder)
        try await agent.install(bundle: path, allow: all)
        // Nobody, not even root, renames a file over a folder.
        let state = folder.path + "/device/state.json"
        try FileManager.default.removeItem(atPath: state)
        try FileManager.default.createDirectory(atPath: state + "/x", withIntermediateDirectories: true)
        await #expect(throws: DeviceError.self) { try await agent.receive(notification(1, #"{"aps":{"alert":"a"}}"#)) }
        #expect(await agent.snapshot().notifications.isEmpty)
        try FileManager.default.removeItem(atPath: state)
        try await agent.receive(notification(1, #"{"aps":{"alert":"a"}}"#))
        #expect(await agent.snapshot().notifications.count == 1)
    }

    @Test func `a program that works too long is ended, and that is recorded`() async throws {
        let folder = try TemporaryFolder()
        var limits = ProgramLimits()
        limits.time = .milliseconds(200)
        limits.grace = .milliseconds(200)
        let agent = try agent(folder, limits)
        try await agent.install(bundle: try bundle(folder, ["background": "sleep 1000"]), allow: all)
        let record = try await withThrowingTaskGroup(of: Void.self) { group in
            defer { group.cancelAll() }
            group.addTask { try await agent.run() }
            try await agent.receive(notification(1, #"{"aps":{"content-available":1}}"#))
            for await _ in await agent.snapshots() {
                let record = await agent.displayRecord(NotificationID(high: 0, low: 1).description)
                if record?.background != nil { return record }
            }
            return nil
        }
        #expect(record?.background == .timedOut)
    }

    @Test func `a run that the agent's end interrupted is repeated`() async throws {
        let folder = try TemporaryFolder()
        let path = try bundle(folder, ["receive": "cat > /dev/null; echo x >> runs"])
        do {
            // It is killed before the program is started.
            let first = try agent(folder)
            try await first.install(bundle: path, allow: all)
            try await first.receive(notification(1, #"{"aps":{"alert":"a"}}"#))
        }
        let second = try agent(folder)
        await withThrowingTaskGroup(of: Void.self) { group in
            defer { group.cancelAll() }
            group.addTask { try await second.run() }
            for await _ in await second.snapshots() where await second.phone.state.runs.isEmpty { return }
        }
        let runs = try String(
            contentsOfFile: "\(folder.path)/device/containers/\(PhoneKit.topic)/runs",
            encoding: .utf8
        )
        #expect(runs == "x\n")
    }

    @Test func `what programs leave in a container stops no agent`() async throws {
        let folder = try TemporaryFolder()
        let path = try bundle(folder, ["receive": "cat > /dev/null"])
        let container = "\(folder.path)/device/containers/\(PhoneKit.topic)"
        do {
            let first = try agent(folder)
            try await first.install(bundle: path, allow: all)
            // Neither is a file with a sound.
            try FileManager.default.createDirectory(
                atPath: container + "/Library/Sounds/pack.wav",
                withIntermediateDirectories: false
            )
        }
        do {
            let second = try agent(folder)
            #expect(second.faults.isEmpty)
            try await second.receive(notification(1, #"{"aps":{"alert":"a"}}"#))
        }
        let information = "\(folder.path)/device/apps/\(PhoneKit.topic).app/Info.plist"
        try Data("no property list".utf8).write(to: URL(fileURLWithPath: information))
        let third = try agent(folder)
        #expect(third.faults.count == 1 && third.faults.first?.contains("until you install it again") == true)
        try await third.receive(notification(2, #"{"aps":{"alert":"a"}}"#))
        try await third.install(bundle: path, allow: all)
    }

    @Test func `an app whose files cannot be deleted is removed all the same`() async throws {
        let folder = try TemporaryFolder()
        let path = try bundle(folder, ["receive": "cat > /dev/null"])
        let agent = try agent(folder)
        try await agent.install(bundle: path, allow: all)
        // Without the folder, the deletion cannot be made durable.
        let apps = folder.path + "/device/apps"
        try FileManager.default.removeItem(atPath: apps)
        try await agent.perform(.remove(PhoneKit.topic))
        let state = await agent.phone.state
        #expect(state.apps.isEmpty && state.deletions == [PhoneKit.topic])
        try FileManager.default.createDirectory(atPath: apps, withIntermediateDirectories: false)
        await withThrowingTaskGroup(of: Void.self) { group in
            defer { group.cancelAll() }
            group.addTask { try await agent.run() }
            for await _ in await agent.snapshots() where await agent.phone.state.deletions.isEmpty { return }
        }
        #expect(await agent.phone.state.deletions.isEmpty)
    }

    /// An app on the local socket of an agent that runs.
    private func withLocalApp(_ body: @Sendable (DeviceAgent, LocalApp) async throws -> Void) async throws {
        let folder = try TemporaryFolder()
        let agent = try agent(folder)
        try await withThrowingTaskGroup(of: Void.self) { group in
            defer { group.cancelAll() }
            group.addTask { try await agent.run() }
            let socket = folder.path + "/device/run/agent.sock"
            // The device listens once it runs.
            for await snapshot in await agent.snapshots() where snapshot.connection.state == .connected { break }
            try await LocalApp.run(PhoneKit.topic, wants: [.alert], socket: socket) { app in
                try await body(agent, app)
            }
        }
    }

    @Test func `an app in Swift hears all that it needs`() async throws {
        try await withLocalApp { agent, app in
            var events = app.events.makeAsyncIterator()
            try await agent.perform(.permit(PhoneKit.topic, [.alert, .badge]))
            #expect(await events.next() == .permission([.alert]))
            #expect(try await app.languages() == ["en"])
            let yes = NotificationCategory.Action(identifier: "yes", title: "Yes")
            try await app.setCategories([NotificationCategory(identifier: "INVITE", actions: [yes])])
            #expect(await agent.phone.state.apps.first?.categories?.first?.actions == [yes])
            try await app.move(to: .foreground)
            try await agent.receive(notification(1, #"{"aps":{"alert":"a"}}"#))
            guard case .notification(let notification)? = await events.next() else {
                Issue.record("no notification")
                return
            }
            #expect(notification.cause == .foreground && notification.id == NotificationID(high: 0, low: 1))
            await #expect(throws: DeviceError.self) { try await app.done(NotificationID(high: 9, low: 9), .noData) }
        }
    }

    @Test func `a virtual device shows what a user would see`() async throws {
        try await withVirtualDevice { device in
            let app = try await device.install(bundle: ExpectedPayload.folder + "/Monopoly.app")
            var switches = PhoneSwitches()
            switches.languages = ["fr"]
            switches.locked = true
            try await device.agent.perform(.set(switches))
            let payload = #"{"aps":{"alert":{"body":"Bob","action-loc-key":"PLAY"},"badge":5}}"#
            let seen = try #require(try await device.receive(Array(payload.utf8), for: app))
            #expect(seen.slider == "Jouer" && seen.place == .lockScreen && seen.badge.after == 5)
        }
    }

    @Test func `files of a bundle are served and nothing else`() async throws {
        let folder = try TemporaryFolder()
        let path = try bundle(folder)
        try Data("png".utf8).write(to: URL(fileURLWithPath: path + "/AppIcon.png"))
        try Data("caf".utf8).write(to: URL(fileURLWithPath: path + "/beep.caf"))
        try Data("gif".utf8).write(to: URL(fileURLWithPath: path + "/Start.png"))
        let agent = try agent(folder)
        let topic = try await agent.install(bundle: path, allow: all)
        #expect(await agent.file(.icon, of: topic, named: "") == Array("png".utf8))
        #expect(await agent.file(.sound, of: topic, named: "beep.caf") == Array("caf".utf8))
        #expect(await agent.file(.image, of: topic, named: "Start.png") == Array("gif".utf8))
        #expect(await agent.file(.image, of: topic, named: "beep.caf") == nil)
        #expect(await agent.file(.image, of: topic, named: "../Start.png") == nil)
        #expect(await agent.file(.sound, of: topic, named: "Info.plist") == nil)
        #expect(await agent.file(.sound, of: topic, named: "../../state.json") == nil)
        // An app that links to something else in its container does not lead there.
        let sounds = "\(folder.path)/device/containers/\(topic)/Library/Sounds"
        symlink("/etc/hostname", sounds + "/host.caf")
        try await agent.receive(notification(1, #"{"aps":{"alert":"a","sound":"host.caf"}}"#))
        #expect(await agent.file(.sound, of: topic, named: "host.caf") == nil)
    }

    @Test(.timeLimit(.minutes(10)))
    func `an agent that can keep nothing ends instead of going on without its programs`() async throws {
        let folder = try TemporaryFolder()
        let agent = try agent(folder)
        try await agent.install(
            bundle: try bundle(folder, ["receive": "until [ -e go ]; do sleep 0.05; done"]),
            allow: all
        )
        let state = folder.path + "/device/state.json"
        let go = folder.path + "/device/containers/\(PhoneKit.topic)/go"
        await #expect(throws: DeviceError.self) {
            try await withThrowingTaskGroup(of: Void.self) { group in
                group.addTask { try await agent.run() }
                try await agent.receive(notification(1, #"{"aps":{"alert":"a"}}"#))
                try FileManager.default.removeItem(atPath: state)
                try FileManager.default.createDirectory(atPath: state + "/x", withIntermediateDirectories: true)
                try Data().write(to: URL(fileURLWithPath: go))
                try await group.next()
            }
        }
        // The run is still on record.
        #expect(await agent.phone.state.runs.count == 1)
    }

    @Test func `a program that waits for its turn is ended too`() async throws {
        let folder = try TemporaryFolder()
        var limits = ProgramLimits.patient
        limits.atOnce = 1
        let agent = try agent(folder, limits)
        let script = "echo x >> runs; until [ -e go ]; do sleep 0.05; done"
        try await agent.install(bundle: try bundle(folder, ["receive": script]), allow: all)
        let container = folder.path + "/device/containers/\(PhoneKit.topic)"
        try await withThrowingTaskGroup(of: Void.self) { group in
            defer { group.cancelAll() }
            group.addTask { try await agent.run() }
            try await agent.receive(notification(1, #"{"aps":{"alert":"a"}}"#))
            try await agent.receive(notification(2, #"{"aps":{"alert":"b"}}"#))
            while !FileManager.default.fileExists(atPath: container + "/runs") { await Task.yield() }
            while await agent.programs.runner.count < 2 { await Task.yield() }
            try await agent.perform(.end(PhoneKit.topic))
            for await _ in await agent.snapshots() where await agent.phone.state.runs.isEmpty { break }
        }
        #expect(try String(contentsOfFile: container + "/runs", encoding: .utf8) == "x\n")
    }

    @Test func `half a line is not joined by the next`() throws {
        let folder = try TemporaryFolder()
        let path = folder.path + "/shown.jsonl"
        let record = DisplayRecord(apnsID: "1", topic: PhoneKit.topic, received: "", state: .background, badge: 0)
        let file = try DisplayLog(path)
        try file.take([.record(record)])
        // The disk is full, and took half of it.
        let half = try FileHandle(forWritingTo: URL(fileURLWithPath: path))
        try half.seekToEnd()
        try half.write(contentsOf: Data(#"{"apns_id":"#.utf8))
        try half.close()
        let full = open("/dev/full", O_WRONLY)
        dup2(full, file.descriptor)
        close(full)
        #expect(throws: DeviceError.self) { try file.take([.amend("1", .replaced(by: "2"))]) }
        try file.take([.amend("1", .replaced(by: "3"))])
        for line in try String(contentsOfFile: path, encoding: .utf8).split(separator: "\n") {
            _ = try JSON.decode(DisplayRecord.self, from: Array(line.utf8))
        }
        #expect(try DisplayLog(path)["1"]?.replacedBy == "3")
    }

    @Test func `the file of records is bounded`() throws {
        let folder = try TemporaryFolder()
        let path = folder.path + "/shown.jsonl"
        func record(_ number: Int) -> DisplayRecord {
            DisplayRecord(apnsID: "\(number)", topic: PhoneKit.topic, received: "", state: .background, badge: 0)
        }
        do {
            let file = try DisplayLog(path, limit: 10)
            for number in 0..<35 { try file.take([.record(record(number))]) }
            try file.take([.amend("34", .replaced(by: "35")), .amend("1", .replaced(by: "2"))])
            #expect(file["24"] == nil && file["25"] != nil && file["34"]?.replacedBy == "35")
        }
        let text = try String(contentsOfFile: path, encoding: .utf8)
        #expect(text.split(separator: "\n").count <= 20)
        let again = try DisplayLog(path, limit: 10)
        #expect(again["24"] == nil && again["25"] != nil && again["34"]?.replacedBy == "35")
        let all = again.changes(after: 0, limit: 100)
        #expect(all.count == 10 && all.records.map(\.apnsID) == (25...34).map(String.init))
        try again.take([.amend("26", .replaced(by: "36")), .amend("33", .replaced(by: "36"))])
        let news = again.changes(after: all.revision, limit: 5)
        #expect(
            news.records.map(\.apnsID) == ["33"] && news.revision == all.revision + 2,
            "26 is not of the newest five"
        )
    }

    @Test func `the file of records never has more bytes than are read`() throws {
        let folder = try TemporaryFolder()
        let path = folder.path + "/shown.jsonl"
        let file = try DisplayLog(path, byteLimit: 4_000)
        for number in 0..<100 {
            let id = "\(number)"
            try file.take([
                .record(DisplayRecord(apnsID: id, topic: PhoneKit.topic, received: "", state: .background, badge: 0))
            ])
            let content = try Data(contentsOf: URL(fileURLWithPath: path))
            #expect(content.count <= 4_000)
            #expect(file[id] != nil && content.last == UInt8(ascii: "\n"))
        }
        #expect(file["0"] == nil, "the oldest go first")
        let again = try DisplayLog(path, byteLimit: 4_000)
        let kept = again.changes(after: 0, limit: 1_000).records.map(\.apnsID)
        #expect(kept == file.changes(after: 0, limit: 1_000).records.map(\.apnsID) && kept.last == "99")
    }

    @Test func `a state that could not be read again is not written`() throws {
        let temporary = try TemporaryFolder()
        let folder = try AgentFolder(temporary.path)
        var state = PhoneState()
        try folder.write(state)
        state.languages = ["de"]
        let error = #expect(throws: DeviceError.self) { try folder.write(state, limit: 100) }
        #expect(error?.code == .notPossible && error?.message.contains("clear notifications") == true)
        #expect(try folder.readState().state == PhoneState())
        try folder.write(state)
        #expect(try folder.readState().state == state)
    }

    /// A second `close` fails, or closes a file that another thread has opened with the same number meanwhile.
    @Test func `a folder in use is refused, and its lock is closed once`() throws {
        let temporary = try TemporaryFolder()
        let holder = try AgentFolder(temporary.path)
        errno = 0
        let refused = try? AgentFolder(temporary.path)
        let last = errno
        #expect(refused == nil && last != EBADF)
        withExtendedLifetime(holder) {}
    }
}
