import Foundation
import HeraldModel
import Testing

@testable import HeraldDesktop
@testable import HeraldPhone

@Suite struct DesktopPlanTests {
    /// A device, and the desktop that shows it, which gives the numbers 101, 102, … in turn.
    private struct Scenario {
        var plan = DesktopPlan(known: ["old"])
        var snapshot = PhoneSnapshot(device: "kitchen", service: "localhost:5223", time: 1000)
        var files = DesktopPlan.Files()
        var lastNumber: UInt32 = 100
        let chat: Topic
        let other: Topic

        init(service capabilities: Set<String>? = ["actions", "body", "body-markup"]) throws {
            chat = try #require(Topic("com.example.chat"))
            other = try #require(Topic("com.example.other"))
            if let capabilities { _ = plan.serviceCame(capabilities) } else { plan.serviceWent() }
            _ = look()
        }

        mutating func look() -> [DesktopPlan.Effect] {
            plan.show(snapshot, files: files)
        }

        mutating func arrive(
            _ id: String,
            _ change: (inout PhoneSnapshot.Notification) -> Void = { _ in }
        ) {
            snapshot.time += 1
            var notification = PhoneSnapshot.Notification(
                id: id,
                topic: chat,
                app: "Chat",
                time: snapshot.time,
                place: .lockScreen
            )
            notification.body = "Text of \(id)"
            change(&notification)
            snapshot.notifications.insert(notification, at: 0)
        }

        mutating func leave(_ id: String) {
            snapshot.notifications.removeAll { $0.id == id }
        }

        /// The desktop does what was ordered.
        mutating func answer(_ effects: [DesktopPlan.Effect]) -> [DesktopPlan.Effect] {
            effects.flatMap { order -> [DesktopPlan.Effect] in
                guard case .show(let id, _, let replacing) = order else { return [] }
                if replacing == 0 { lastNumber += 1 }
                return plan.shown(id, as: replacing == 0 ? lastNumber : replacing)
            }
        }

        /// Something arrives and is shown.
        mutating func show(_ ids: String...) -> [DesktopPlan.Effect] {
            for id in ids { arrive(id) }
            return answer(look())
        }
    }

    private func shown(_ effects: [DesktopPlan.Effect]) -> [String] {
        effects.compactMap { if case .show(let id, _, _) = $0 { id } else { nil } }
    }

    private func notice(_ effects: [DesktopPlan.Effect]) throws -> DesktopNotification {
        try #require(effects.lazy.compactMap { if case .show(_, let notice, _) = $0 { notice } else { nil } }.first)
    }

    @Test func `new notifications are shown once, oldest first`() throws {
        var scene = try Scenario()
        scene.arrive("n1")
        scene.arrive("n2")
        let effects = scene.look()
        #expect(shown(effects) == ["n1", "n2"])
        #expect(scene.answer(effects).isEmpty)
        #expect(scene.look().isEmpty)
    }

    @Test func `notifications from before the start are not shown`() throws {
        var plan = DesktopPlan(known: ["old"])
        #expect(plan.serviceCame([]).isEmpty)
        var scene = try Scenario()
        scene.arrive("old")
        #expect(plan.show(scene.snapshot, files: scene.files).isEmpty)
        scene.leave("old")
        #expect(plan.show(scene.snapshot, files: scene.files).isEmpty)
    }

    @Test func `a notification between start and first snapshot is shown, also after the clock was set back`() throws {
        var plan = DesktopPlan(known: ["old"])
        #expect(plan.serviceCame([]).isEmpty)
        var scene = try Scenario()
        scene.arrive("old")
        scene.arrive("n1") { $0.time -= 3600 }
        #expect(shown(plan.show(scene.snapshot, files: scene.files)) == ["n1"])
    }

    @Test func `a notification removed from the device is removed from the desktop`() throws {
        var scene = try Scenario()
        #expect(scene.show("n1", "n2").isEmpty)
        scene.leave("n1")
        #expect(scene.look() == [.close(101)])
        #expect(scene.look().isEmpty)
    }

    @Test func `a notification removed too early is removed once the desktop shows it`() throws {
        var scene = try Scenario()
        scene.arrive("n1")
        let effects = scene.look()
        scene.leave("n1")
        #expect(scene.look().isEmpty)
        #expect(scene.answer(effects) == [.close(101)])
        #expect(scene.plan.end().isEmpty)
    }

    @Test func `a replacement replaces the notification on the desktop`() throws {
        var scene = try Scenario()
        #expect(scene.show("n1", "n2").isEmpty)
        scene.leave("n1")
        scene.arrive("n3") { $0.replaced = true }
        let effects = scene.look()
        guard case .show("n3", _, replacing: 101)? = effects.first, effects.count == 1 else {
            Issue.record("\(effects)")
            return
        }
        #expect(scene.answer(effects).isEmpty)
        #expect(scene.plan.invoked(101, key: "default") == .tap(id: "n3"))
    }

    @Test func `a replacement of a notification that the desktop does not show is new`() throws {
        var scene = try Scenario()
        #expect(scene.show("n1", "n2").isEmpty)
        #expect(scene.plan.closed(102, .expired).isEmpty)
        scene.leave("n1")
        scene.leave("n2")
        let other = scene.other
        scene.arrive("n3") {
            $0.replaced = true
            $0.topic = other
        }
        let effects = scene.look()
        guard case .show("n3", _, replacing: 0)? = effects.first else {
            Issue.record("\(effects)")
            return
        }
        #expect(effects.dropFirst() == [.close(101)])
    }

    @Test func `a click opens, a button acts, and later signals are ignored`() throws {
        var scene = try Scenario()
        let actions = [
            try Self.action("reply", takesText: true), try Self.action("accept"), try Self.action("decline"),
        ]
        scene.arrive("n1") { $0.actions = actions }
        scene.arrive("n2")
        let effects = scene.look()
        #expect(try notice(effects).buttons.map(\.key) == ["default", "action-1", "action-2"])
        #expect(scene.answer(effects).isEmpty)
        #expect(scene.plan.invoked(101, key: "action-2") == .act(id: "n1", action: "decline", text: nil))
        #expect(scene.plan.invoked(101, key: "default") == nil)
        #expect(scene.plan.invoked(102, key: "default") == .tap(id: "n2"))
        #expect(scene.plan.closed(101, .dismissed).isEmpty)
        scene.leave("n1")
        scene.leave("n2")
        #expect(scene.look() == [.close(102)])
    }

    @Test(arguments: ["", "action-", "action-1", "action--1", "action-9223372036854775808", "other"])
    func `an unknown button does nothing`(key: String) throws {
        var scene = try Scenario()
        let action = try Self.action("accept")
        scene.arrive("n1") { $0.actions = [action] }
        #expect(scene.answer(scene.look()).isEmpty)
        #expect(scene.plan.invoked(101, key: key) == nil)
        #expect(scene.plan.invoked(7, key: "default") == nil)
    }

    @Test func `a dismissed notification is closed on the device; an expired one stays`() throws {
        var scene = try Scenario()
        #expect(scene.show("n1", "n2", "n3").isEmpty)
        #expect(scene.plan.closed(101, .dismissed) == [.close(id: "n1")])
        #expect(scene.plan.closed(102, .expired).isEmpty)
        #expect(scene.plan.closed(103, nil).isEmpty)
        #expect(scene.plan.closed(101, .dismissed).isEmpty)
        scene.leave("n1")
        scene.leave("n2")
        #expect(scene.look().isEmpty)
    }

    @Test func `the newest of a thread replaces it on the desktop with a count, and is dismissed with it`() throws {
        var scene = try Scenario()
        for (id, thread) in [("n1", "lena"), ("n2", "lena"), ("n3", "tom")] { scene.arrive(id) { $0.thread = thread } }
        let first = scene.look()
        #expect(shown(first) == ["n2", "n3"])
        #expect(try notice(first).summary == "Chat (2)")
        scene.arrive("n4") { $0.thread = "tom" }
        let early = scene.look()
        #expect(scene.answer(first) == [.close(102)], "its successor came before the desktop had answered")
        #expect(scene.answer(early).isEmpty)
        scene.leave("n1")
        scene.arrive("n5") { $0.thread = "lena" }
        let second = scene.look()
        guard case .show("n5", let notice, replacing: 101)? = second.first, second.count == 1 else {
            Issue.record("\(second)")
            return
        }
        #expect(notice.summary == "Chat (2)" && scene.answer(second).isEmpty)
        #expect(scene.plan.closed(101, .dismissed) == [.close(id: "n5"), .close(id: "n2")])
        #expect(scene.plan.invoked(103, key: "default") == .tap(id: "n4"))
    }

    @Test func `of many at once the newest are shown, and older ones make room`() throws {
        var scene = try Scenario()
        for number in 1...30 { scene.arrive("n\(number)") }
        let effects = scene.look()
        #expect(shown(effects) == (11...30).map { "n\($0)" })
        #expect(scene.answer(effects).isEmpty)
        scene.arrive("n31")
        let more = scene.look()
        #expect(shown(more) == ["n31"])
        #expect(more.last == .close(101))
    }

    @Test func `a desktop that does not answer gets no further requests`() throws {
        var scene = try Scenario()
        var asked: [DesktopPlan.Effect] = []
        for number in 1...100 {
            scene.arrive("n\(number)")
            asked += scene.look()
        }
        #expect(shown(asked).count == DesktopPlan.maximumShown)
        scene.snapshot.notifications = []
        #expect(scene.look().isEmpty)
        #expect(scene.answer(asked).count == DesktopPlan.maximumShown)
        scene.arrive("n101")
        #expect(shown(scene.look()) == ["n101"])
    }

    @Test func `a notification that the desktop refuses is dropped`() throws {
        var scene = try Scenario()
        scene.arrive("n1")
        #expect(shown(scene.look()) == ["n1"])
        scene.plan.notShown("n1")
        scene.leave("n1")
        #expect(scene.look().isEmpty)
    }

    @Test func `without a service nothing is shown, and a new one shows later notifications`() throws {
        var scene = try Scenario(service: nil)
        #expect(scene.show("n1").isEmpty)
        #expect(scene.plan.serviceCame([]).isEmpty)
        #expect(scene.show("n2").isEmpty)
        #expect(scene.lastNumber == 101)
        scene.plan.serviceWent()
        #expect(scene.plan.closed(101, .dismissed).isEmpty)
        #expect(scene.plan.serviceCame([]).isEmpty)
        scene.leave("n2")
        scene.arrive("n3")
        #expect(shown(scene.look()) == ["n3"])
    }

    @Test func `notifications wait for the service's capabilities`() throws {
        var scene = try Scenario()
        #expect(scene.show("n1").isEmpty)
        scene.plan.serviceIsAwaited()
        scene.arrive("n2")
        scene.arrive("n3")
        #expect(scene.look().isEmpty)
        scene.leave("n2")
        #expect(scene.look().isEmpty)
        #expect(shown(scene.plan.serviceCame([])) == ["n3"])
        scene.plan.serviceIsAwaited()
        scene.arrive("n4")
        #expect(scene.look().isEmpty)
        scene.plan.serviceWent()
        #expect(scene.plan.serviceCame([]).isEmpty)
    }

    @Test func `at the end all notifications are removed`() throws {
        var scene = try Scenario()
        #expect(scene.show("n1", "n2").isEmpty)
        #expect(scene.plan.end() == [.close(101), .close(102)])
        #expect(scene.plan.closed(101, .asked).isEmpty)
    }

    @Test func `a sound goes with the notification that made it`() throws {
        var scene = try Scenario()
        scene.files.sounds = ["s1": "/run/1.wav"]
        scene.arrive("n1")
        scene.snapshot.sounds.append(sound("s1", "beep.wav", scene))
        scene.arrive("n2")
        scene.arrive("n3")
        scene.snapshot.sounds.append(sound("s2", "default", scene))
        let sounds = scene.look().compactMap { if case .show(_, let notice, _) = $0 { notice.sound } else { nil } }
        #expect(sounds == [DesktopNotification.Sound.file("/run/1.wav"), .none, .standard])
        scene.arrive("n4")
        #expect(try notice(scene.look()).sound == DesktopNotification.Sound.none)
    }

    private func sound(_ id: String, _ name: String, _ scene: Scenario) -> PhoneSnapshot.Sound {
        PhoneSnapshot.Sound(id: id, topic: scene.chat, name: name, time: scene.snapshot.time)
    }

    static func action(_ identifier: String, takesText: Bool = false) throws -> NotificationCategory.Action {
        let text = """
            {"identifier":"\(identifier)","title":"\(identifier.capitalized)","foreground":false,"destructive":false,
            "authentication_required":false,"text_input":\(takesText)}
            """
        return try JSONDecoder().decode(NotificationCategory.Action.self, from: Data(text.utf8))
    }
}
