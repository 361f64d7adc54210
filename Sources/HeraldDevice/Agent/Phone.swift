import Foundation
import HeraldModel

/// A device, decided: knows no clock, socket or file.
///
/// Everything that happens to it is a call, which changes ``state`` and returns orders. Whoever carries them out makes
/// records and state durable first, so that what was decided is never lost and never decided twice.
struct Phone {
    let device: String
    let service: String
    let limits: PhoneLimits
    var state: PhoneState
    /// What is known of the apps that have bundles.
    var bundles: [Topic: AppBundle]

    // What a restart may forget.
    var connection = PhoneSnapshot.Connection()
    var log: [PhoneSnapshot.Line] = []
    var sounds: [PhoneSnapshot.Sound] = []
    /// What came last to an app that is open.
    var received: [Topic: PhoneState.Arrival] = [:]
    /// The apps that are on the local socket.
    var present: Set<Topic> = []

    init(
        device: String,
        service: String,
        state: PhoneState = PhoneState(),
        bundles: [Topic: AppBundle] = [:],
        limits: PhoneLimits = PhoneLimits()
    ) {
        self.device = device
        self.service = service
        self.state = state
        self.bundles = bundles
        self.limits = limits
    }

    /// The device is switched on: what the service may not know is said, what was under way goes on.
    mutating func start(_ now: WallTime) -> [PhoneOrder] {
        for index in state.apps.indices where state.apps[index].state != .endedByUser {
            if state.apps[index].state == .foreground { state.apps[index].hasSnapshot = true }
            state.apps[index].state = .notRunning
        }
        state.foreground = nil
        state.banner = nil
        var orders = state.deletions.map { PhoneOrder.deleteFiles($0) }
        orders += state.removals.map { .unregister($0.topic, in: $0.environment) }
        for app in state.apps where app.permission != nil {
            orders += app.information.topics.compactMap { topic in
                app.tokens[topic.name].flatMap { DeviceToken($0) }.map { .present($0, for: topic) }
            }
            orders += register(app)
        }
        if !state.hasNetwork { orders.append(.setNetwork(false)) }
        if state.isSaving { orders.append(.setSaving(true)) }
        orders += state.runs.filter { $0.deadline == nil }.map { .run($0) }
        return orders + tick(now)
    }

    /// Asks the service for what an app needs: its topics, and the user's wish if the service may not know it.
    func register(_ app: PhoneState.App) -> [PhoneOrder] {
        let environment = app.information.environment
        let topics = app.information.topics.map { PhoneOrder.register(DeviceApp(topic: $0, environment: environment)) }
        return topics + (app.isEnabled == app.isEnabledAtService ? [] : [.setEnabled(app.isEnabled, for: app.topic)])
    }

    // What the service says.

    mutating func connected(_ now: WallTime) {
        connection = PhoneSnapshot.Connection()
        connection.state = .connected
        note("connected to \(service)", now)
    }

    mutating func disconnected(_ reason: String, nextAttempt: Duration?, _ now: WallTime) {
        connection.state = .offline
        connection.reason = reason
        connection.retryIn = nextAttempt.map { Double($0.wholeMilliseconds) / 1000 }
        note("disconnected: \(reason)", now)
    }

    mutating func refused(_ reason: String, _ now: WallTime) {
        connection.state = .refused
        connection.reason = reason
        connection.retryIn = nil
        note("refused: \(reason)", now)
    }

    mutating func gotToken(_ token: DeviceToken, for topic: Topic, _ now: WallTime) -> [PhoneOrder] {
        guard let index = owner(of: topic) else { return [] }
        let isNew = state.apps[index].tokens.updateValue(token.hex, forKey: topic.name) != token.hex
        state.apps[index].refused = nil
        if isNew { note("\(name(index)) got a device token\(suffix(topic, index))", now) }
        return [.tell(state.apps[index].topic, .token(topic, token.hex))]
    }

    mutating func appRefused(_ topic: Topic, reason: String, _ now: WallTime) -> [PhoneOrder] {
        guard let index = owner(of: topic) else { return [] }
        state.apps[index].refused = reason
        note("\(name(index)) is not registered: \(reason)", now)
        return [.tell(state.apps[index].topic, .refused(topic, reason))]
    }

    mutating func removed(_ topic: Topic) {
        state.removals.removeAll { $0.topic == topic }
    }

    /// The service knows what was said last.
    mutating func settingsTaken(_ topic: Topic) {
        guard let index = owner(of: topic) else { return }
        state.apps[index].isEnabledAtService = state.apps[index].isEnabled
    }

    // Time.

    /// When ``tick(_:)`` has something to do next, in UNIX seconds.
    var nextTick: Double? {
        let activities = state.activities.flatMap { activity -> [Double] in
            let stale = activity.view.state == .active ? activity.view.staleDate : nil
            return [stale, activity.view.dismissalDate].compactMap { $0 }
        }
        return (activities + state.runs.compactMap(\.deadline)).min()
    }

    /// Time has passed: Live Activities become outdated or go, and apps that did not say that they are done are late.
    mutating func tick(_ now: WallTime) -> [PhoneOrder] {
        let time = now.unixSeconds
        for index in state.activities.indices where state.activities[index].view.state == .active {
            guard let date = state.activities[index].view.staleDate, date <= time else { continue }
            state.activities[index].view.state = .stale
            note("a Live Activity of \(state.activities[index].view.app) is out of date", now)
        }
        for activity in state.activities where activity.view.dismissalDate.map({ $0 <= time }) ?? false {
            note("a Live Activity of \(activity.view.app) is gone", now)
        }
        state.activities.removeAll { $0.view.dismissalDate.map { $0 <= time } ?? false }
        let late = state.runs.filter { $0.deadline.map { $0 <= time } ?? false }
        return late.flatMap { runEnded($0.number, .timedOut, now) }
    }

    // What the others need.

    /// The app that a topic belongs to.
    func owner(of topic: Topic) -> Int? {
        state.apps.firstIndex { $0.information.topics.contains(topic) }
    }

    /// The app of that name.
    /// - Throws: ``DeviceError/Code/notPossible``.
    func app(_ topic: Topic) throws -> Int {
        guard let index = state.apps.firstIndex(where: { $0.topic == topic }) else {
            throw DeviceError(.notPossible, "there is no app \(topic) on this device")
        }
        return index
    }

    func name(_ index: Int) -> String { state.apps[index].information.name }

    private func suffix(_ topic: Topic, _ index: Int) -> String {
        topic == state.apps[index].topic ? "" : " for \(topic)"
    }

    mutating func number() -> Int {
        state.lastNumber += 1
        return state.lastNumber
    }

    mutating func note(_ text: String, _ now: WallTime) {
        log.append(PhoneSnapshot.Line(time: now.unixSeconds, text: text))
        if log.count > limits.lines { log.removeFirst(log.count - limits.lines) }
    }
}

extension WallTime {
    /// Seconds since the UNIX epoch, with their fraction.
    var unixSeconds: Double { Double(milliseconds) / 1000 }
}
