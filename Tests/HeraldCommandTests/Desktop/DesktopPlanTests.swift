import Foundation
import HeraldDevice
import HeraldModel
import Testing

@testable import HeraldCommand

@Suite struct DesktopPlanTests {
    /// A device, and the desktop that shows it, which gives the numbers 101, 102, … in turn.
    private struct Scene {
        var plan = DesktopPlan(start: 1000)
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

        mutating func look() -> [DesktopPlan.Order] {
            plan.see(snapshot, files: files)
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
        mutating func answer(_ orders: [DesktopPlan.Order]) -> [DesktopPlan.Order] {
            orders.flatMap { order -> [DesktopPlan.Order] in
                guard case .show(let id, _, let replacing) = order else { return [] }
                if replacing == 0 { lastNumber += 1 }
                return plan.shown(id, as: replacing == 0 ? lastNumber : replacing)
            }
        }

        /// Something arrives and is shown.
        mutating func show(_ ids: String...) -> [DesktopPlan.Order] {
            for id in ids { arrive(id) }
            return answer(look())
        }
    }

    private func shown(_ orders: [DesktopPlan.Order]) -> [String] {
        orders.compactMap { if case .show(let id, _, _) = $0 { id } else { nil } }
    }

    private func notice(_ orders: [DesktopPlan.Order]) throws -> DesktopNotice {
        try #require(orders.lazy.compactMap { if case .show(_, let notice, _) = $0 { notice } else { nil } }.first)
    }

    @Test func `what comes is shown once, oldest first`() throws {
        var scene = try Scene()
        scene.arrive("n1")
        scene.arrive("n2")
        let orders = scene.look()
        #expect(shown(orders) == ["n1", "n2"])
        #expect(scene.answer(orders).isEmpty)
        #expect(scene.look().isEmpty)
    }

    @Test func `what was there before it began is not shown`() throws {
        var scene = try Scene()
        scene.arrive("n1") { $0.time = 999 }
        #expect(scene.look().isEmpty)
        scene.leave("n1")
        #expect(scene.look().isEmpty)
    }

    @Test func `what came before the first look, but after the start, is shown`() throws {
        var plan = DesktopPlan(start: 1000)
        #expect(plan.serviceCame([]).isEmpty)
        var scene = try Scene()
        scene.arrive("n1")
        #expect(shown(plan.see(scene.snapshot, files: scene.files)) == ["n1"])
    }

    @Test func `what left the device leaves the desktop`() throws {
        var scene = try Scene()
        #expect(scene.show("n1", "n2").isEmpty)
        scene.leave("n1")
        #expect(scene.look() == [.close(101)])
        #expect(scene.look().isEmpty)
    }

    @Test func `what left before the desktop showed it is taken away once it does`() throws {
        var scene = try Scene()
        scene.arrive("n1")
        let orders = scene.look()
        scene.leave("n1")
        #expect(scene.look().isEmpty)
        #expect(scene.answer(orders) == [.close(101)])
        #expect(scene.plan.end().isEmpty)
    }

    @Test func `what replaces another takes its place`() throws {
        var scene = try Scene()
        #expect(scene.show("n1", "n2").isEmpty)
        scene.leave("n1")
        scene.arrive("n3") { $0.replaced = true }
        let orders = scene.look()
        guard case .show("n3", _, replacing: 101)? = orders.first, orders.count == 1 else {
            Issue.record("\(orders)")
            return
        }
        #expect(scene.answer(orders).isEmpty)
        #expect(scene.plan.invoked(101, key: "default") == .tap(id: "n3"))
    }

    @Test func `what replaces one of another app, or one that the desktop shows no more, is new`() throws {
        var scene = try Scene()
        #expect(scene.show("n1", "n2").isEmpty)
        #expect(scene.plan.closed(102, .expired) == nil)
        scene.leave("n1")
        scene.leave("n2")
        let other = scene.other
        scene.arrive("n3") {
            $0.replaced = true
            $0.topic = other
        }
        let orders = scene.look()
        guard case .show("n3", _, replacing: 0)? = orders.first else {
            Issue.record("\(orders)")
            return
        }
        #expect(orders.dropFirst() == [.close(101)])
    }

    @Test func `a click opens, a button acts, and what follows is no second answer`() throws {
        var scene = try Scene()
        let actions = [
            try Self.action("reply", takesText: true), try Self.action("accept"), try Self.action("decline"),
        ]
        scene.arrive("n1") { $0.actions = actions }
        scene.arrive("n2")
        let orders = scene.look()
        #expect(try notice(orders).buttons.map(\.key) == ["default", "action-1", "action-2"])
        #expect(scene.answer(orders).isEmpty)
        #expect(scene.plan.invoked(101, key: "action-2") == .act(id: "n1", action: "decline", text: nil))
        #expect(scene.plan.invoked(101, key: "default") == nil)
        #expect(scene.plan.invoked(102, key: "default") == .tap(id: "n2"))
        #expect(scene.plan.closed(101, .dismissed) == nil)
        scene.leave("n1")
        scene.leave("n2")
        #expect(scene.look() == [.close(102)])
    }

    @Test(arguments: ["", "action-", "action-1", "action--1", "action-9223372036854775808", "other"])
    func `a button that is not there does nothing`(key: String) throws {
        var scene = try Scene()
        let action = try Self.action("accept")
        scene.arrive("n1") { $0.actions = [action] }
        #expect(scene.answer(scene.look()).isEmpty)
        #expect(scene.plan.invoked(101, key: key) == nil)
        #expect(scene.plan.invoked(7, key: "default") == nil)
    }

    @Test func `what the user dismisses is closed on the device; what expires stays there`() throws {
        var scene = try Scene()
        #expect(scene.show("n1", "n2", "n3").isEmpty)
        #expect(scene.plan.closed(101, .dismissed) == .close(id: "n1"))
        #expect(scene.plan.closed(102, .expired) == nil)
        #expect(scene.plan.closed(103, nil) == nil)
        #expect(scene.plan.closed(101, .dismissed) == nil)
        scene.leave("n1")
        scene.leave("n2")
        #expect(scene.look().isEmpty)
    }

    @Test func `of many at once the newest are shown, and older ones make room`() throws {
        var scene = try Scene()
        for number in 1...30 { scene.arrive("n\(number)") }
        let orders = scene.look()
        #expect(shown(orders) == (11...30).map { "n\($0)" })
        #expect(scene.answer(orders).isEmpty)
        scene.arrive("n31")
        let more = scene.look()
        #expect(shown(more) == ["n31"])
        #expect(more.last == .close(101))
    }

    @Test func `a desktop that does not answer is asked for no more than it may show`() throws {
        var scene = try Scene()
        var asked: [DesktopPlan.Order] = []
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

    @Test func `what the desktop refuses to show is forgotten`() throws {
        var scene = try Scene()
        scene.arrive("n1")
        #expect(shown(scene.look()) == ["n1"])
        scene.plan.notShown("n1")
        scene.leave("n1")
        #expect(scene.look().isEmpty)
    }

    @Test func `without a service nothing is shown, and a new one shows what comes then`() throws {
        var scene = try Scene(service: nil)
        #expect(scene.show("n1").isEmpty)
        #expect(scene.plan.serviceCame([]).isEmpty)
        #expect(scene.show("n2").isEmpty)
        #expect(scene.lastNumber == 101)
        scene.plan.serviceWent()
        #expect(scene.plan.closed(101, .dismissed) == nil)
        #expect(scene.plan.serviceCame([]).isEmpty)
        scene.leave("n2")
        scene.arrive("n3")
        #expect(shown(scene.look()) == ["n3"])
    }

    @Test func `what comes while the service is asked what it can do is shown when it has answered`() throws {
        var scene = try Scene()
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

    @Test func `at the end all is taken away`() throws {
        var scene = try Scene()
        #expect(scene.show("n1", "n2").isEmpty)
        #expect(scene.plan.end() == [.close(101), .close(102)])
        #expect(scene.plan.closed(101, .asked) == nil)
    }

    @Test func `a sound goes with the notification that made it`() throws {
        var scene = try Scene()
        scene.files.sounds = ["s1": "/run/1.wav"]
        scene.arrive("n1")
        scene.snapshot.sounds.append(sound("s1", "beep.wav", scene))
        scene.arrive("n2")
        scene.arrive("n3")
        scene.snapshot.sounds.append(sound("s2", "default", scene))
        let sounds = scene.look().compactMap { if case .show(_, let notice, _) = $0 { notice.sound } else { nil } }
        #expect(sounds == [DesktopNotice.Sound.file("/run/1.wav"), .none, .standard])
        scene.arrive("n4")
        #expect(try notice(scene.look()).sound == DesktopNotice.Sound.none)
    }

    private func sound(_ id: String, _ name: String, _ scene: Scene) -> PhoneSnapshot.Sound {
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
