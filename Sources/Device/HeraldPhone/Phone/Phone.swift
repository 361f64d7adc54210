import Foundation
import HeraldDevice
import HeraldJSON
import HeraldModel

/// Decides what happens on a simulated device.
///
/// Knows no clock, socket or file.
///
/// Each event is a call, which changes ``state`` and returns effects. The agent makes records and state durable before it
/// performs the effects, so that no decision is lost or made twice.
struct Phone {
    let device: String
    let service: String
    let limits: PhoneLimits
    var state: PhoneState
    var bundles: [Topic: AppBundle]

    // Not kept over a restart.
    private(set) var connection = PhoneSnapshot.Connection()
    private(set) var log: [PhoneSnapshot.Line] = []
    private(set) var sounds: [PhoneSnapshot.Sound] = []
    /// The last notification that the open app received.
    var received: [Topic: PhoneState.Arrival] = [:]
    /// The last button that the user pressed, until its app is left.
    var pressed: [Topic: (arrival: PhoneState.Arrival, action: String, text: String?)] = [:]
    /// Outcomes of service programs that wait for an earlier run of their app, by the number of their run.
    var endedServices: [Int: (outcome: DisplayRecord.ExtensionOutcome, payload: [UInt8]?)] = [:]
    /// The apps that are connected to the local socket.
    private(set) var connectedApps: Set<Topic> = []
    /// The name of the machine's time zone.
    var machineZone = "GMT"
    /// The time of the last look at the clock, in UNIX seconds; nil before the first.
    ///
    /// ``PhoneState/lastTime`` keeps it.
    var lastTime: Double?

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
        lastTime = state.lastTime
        // A state file may have been edited.
        self.state.clockAhead = min(max(state.clockAhead, -limits.clockSeconds), limits.clockSeconds)
        self.state.lastNumber = max(0, min(state.lastNumber, .max / 2))
    }

    func snapshot(_ now: WallTime) -> PhoneSnapshot {
        PhoneSnapshotBuilder(phone: self).snapshot(at: now)
    }

    /// Starts the device: repeats requests that the service may not have received, and resumes unfinished runs.
    mutating func start(_ now: WallTime) -> [PhoneEffect] {
        for index in state.apps.indices where state.apps[index].state != .endedByUser {
            if state.apps[index].state == .foreground { state.apps[index].hasSnapshot = true }
            state.apps[index].state = .notRunning
        }
        state.foreground = nil
        state.notifications.hideBanner()
        var effects = state.deletions.map { PhoneEffect.deleteFiles($0) }
        effects += state.removals.map { .unregister($0.topic, in: $0.environment) }
        for index in state.apps.indices where state.apps[index].permission != nil {
            let app = state.apps[index]
            effects += app.information.topics.compactMap { topic in
                app.tokens[topic.name].flatMap { DeviceToken($0) }.map { .present($0, for: topic) }
            }
            effects += registration(of: index)
        }
        effects += endUnusedChannels() + state.channels.compactMap(\.channel).map { .subscribe($0) }
        if !state.hasNetwork { effects.append(.setNetwork(false)) }
        // The service remembers what it was told last, and may have been told nothing since a change.
        effects.append(.setSaving(state.isSaving))
        effects += state.runs.filter { $0.deadline == nil }.map { .run($0) }
        return effects + tick(now)
    }

    /// Registers the topics of an app, and repeats its setting if that has changed or the service may not know it.
    mutating func registration(of index: Int, isChanged: Bool = false) -> [PhoneEffect] {
        let app = state.apps[index]
        let environment = app.information.environment
        let topics = app.information.topics.map { PhoneEffect.register(DeviceApp(topic: $0, environment: environment)) }
        return topics + (isChanged || isEnabled(app) != app.isEnabledAtService ? [tellSetting(index)] : [])
    }

    /// Tells the service whether the user wants an app's notifications, also after a restart if it does not confirm it.
    mutating func tellSetting(_ index: Int) -> PhoneEffect {
        state.apps[index].isEnabledAtService = nil
        return .setEnabled(isEnabled(state.apps[index]), for: state.apps[index].topic)
    }

    // MARK: - Connection

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

    mutating func setNetwork(_ isOn: Bool, _ now: WallTime) -> PhoneEffect {
        state.hasNetwork = isOn
        note(isOn ? "network on" : "network off", now)
        if isOn {
            connection.state = .connecting
            connection.reason = nil
        }
        connection.retryIn = nil
        return .setNetwork(isOn)
    }

    mutating func gotToken(_ token: DeviceToken, for topic: Topic, _ now: WallTime) -> [PhoneEffect] {
        guard let index = owner(of: topic) else { return [] }
        let isNew = state.apps[index].tokens.updateValue(token.hex, forKey: topic.name) != token.hex
        state.apps[index].refused = nil
        guard isNew else { return [.notifyApp(state.apps[index].topic, .token(topic, token.hex))] }
        let suffix = topic == state.apps[index].topic ? "" : " for \(topic)"
        note("\(name(index)) got a device token\(suffix)", now)
        return tell(index, .token(topic, token.hex), now)
    }

    mutating func appRefused(_ topic: Topic, reason: String, _ now: WallTime) -> [PhoneEffect] {
        guard let index = owner(of: topic) else { return [] }
        let isNew = state.apps[index].refused != reason
        state.apps[index].refused = reason
        note("\(name(index)) is not registered: \(reason)", now)
        guard isNew else { return [.notifyApp(state.apps[index].topic, .refused(topic, reason))] }
        return tell(index, .refused(topic, reason), now)
    }

    mutating func removed(_ topic: Topic) {
        state.removals.removeAll { $0.topic == topic }
    }

    /// The service confirmed a setting of the user, which may have changed since.
    mutating func settingsTaken(_ topic: Topic, isEnabled: Bool) {
        guard let index = owner(of: topic), isEnabled == self.isEnabled(state.apps[index]) else { return }
        state.apps[index].isEnabledAtService = isEnabled
    }

    // MARK: - Apps

    /// Installs an app, or replaces the one with its identifier, which keeps permission, token and badge.
    ///
    /// Throws ``DeviceError/Code/notPossible`` if there are too many apps, or another has one of its topics.
    mutating func install(
        _ information: AppInformation,
        _ bundle: AppBundle?,
        allow: Set<NotificationKind>?,
        _ now: WallTime
    ) throws -> [PhoneEffect] {
        try checkTopics(information)
        let topic = information.topic
        var effects: [PhoneEffect] = []
        if let index = state.apps.firstIndex(where: { $0.topic == topic }) {
            let former = state.apps[index].information
            let wasEnabled = isEnabled(state.apps[index])
            bundles[topic] = bundle
            let hasMoved = former.environment != information.environment
            // An app that changes its environment leaves no registration behind in the other one.
            effects += unregister(former.topics.filter { hasMoved || !information.topics.contains($0) }, index)
            if hasMoved { state.apps[index].isEnabledAtService = true }
            if former != information { note("\(information.name) was replaced", now) }
            state.apps[index].information = information
            if state.apps[index].permission != nil {
                let isChanged = isEnabled(state.apps[index]) != wasEnabled
                effects += registration(of: index, isChanged: isChanged)
            }
            effects += repeatTokens(index, now)
        } else {
            guard state.apps.count < limits.apps else {
                throw DeviceError(
                    .notPossible,
                    "there are already \(limits.apps) apps on this device: remove one first"
                )
            }
            var app = PhoneState.App(information: information)
            app.number = nextNumber()
            state.apps.append(app)
            bundles[topic] = bundle
            note("\(information.name) was installed", now)
        }
        state.deletions.removeAll { $0 == topic }
        if let allow, let index = state.apps.firstIndex(where: { $0.topic == topic }),
            state.apps[index].permission == nil
        {
            effects += permit(index, allow, now)
        }
        return effects
    }

    /// Checks that no other app has a topic of an app: a topic has one token.
    /// - Throws: ``DeviceError/Code/notPossible``.
    func checkTopics(_ information: AppInformation) throws {
        for other in state.apps where other.topic != information.topic {
            guard let shared = information.topics.first(where: other.information.topics.contains) else { continue }
            throw DeviceError(.notPossible, "the app \(other.topic) has the topic \(shared): remove that app first")
        }
    }

    mutating func remove(_ index: Int, _ now: WallTime) -> [PhoneEffect] {
        let app = state.apps[index]
        let topic = app.topic
        note("\(name(index)) was removed", now)
        var effects: [PhoneEffect] = [.endPrograms(topic), .notifyApp(topic, .refused(topic, "the app was removed"))]
        effects += unregister(app.information.topics, index)
        state.apps.remove(at: index)
        bundles[topic] = nil
        if state.foreground == topic { state.foreground = nil }
        received[topic] = nil
        pressed[topic] = nil
        state.notifications.removeAll(of: topic)
        state.activities.removeAll(of: topic)
        effects += endUnusedChannels()
        state.runs.removeAll { $0.app == topic }
        endedServices = endedServices.filter { entry in state.runs.contains { $0.number == entry.key } }
        _ = state.pending.cancel(nil, of: topic)
        if app.information.hasBundle {
            state.deletions.append(topic)
            effects.append(.deleteFiles(topic))
        }
        return effects
    }

    /// The agent has deleted the files of a removed app.
    mutating func deleted(_ topic: Topic) {
        state.deletions.removeAll { $0 == topic }
    }

    /// Ends the registration of topics; an app without permission has none.
    private mutating func unregister(_ topics: [Topic], _ index: Int) -> [PhoneEffect] {
        guard state.apps[index].permission != nil else { return [] }
        let environment = state.apps[index].information.environment
        return topics.map { topic in
            state.apps[index].tokens[topic.name] = nil
            state.removals.removeAll { $0.topic == topic }
            state.removals.append(PhoneState.Removal(topic: topic, environment: environment))
            return .unregister(topic, in: environment)
        }
    }

    // MARK: - Apps on the local socket

    /// An app has connected.
    ///
    /// An app that is not installed is installed without a bundle.
    ///
    /// `wants` is the permission that it requests. Throws ``DeviceError/Code/notPossible`` if there are too many apps.
    mutating func appConnected(_ topic: Topic, wants: [NotificationKind]?, _ now: WallTime) throws -> [PhoneEffect] {
        var effects: [PhoneEffect] = []
        if !state.apps.contains(where: { $0.topic == topic }) {
            var information = AppInformation(topic: topic)
            information.wants = wants ?? information.wants
            effects += try install(information, nil, allow: nil, now)
        }
        let index = try app(topic)
        connectedApps.insert(topic)
        if !state.apps[index].state.isRunning { state.apps[index].state = .background }
        let app = state.apps[index]
        if let permission = app.permission {
            effects.append(.notifyApp(topic, .permission(topic, permission.kinds)))
        }
        effects += tokens(index).map { .notifyApp(topic, $0) }
        if let reason = app.refused { effects.append(.notifyApp(topic, .refused(topic, reason))) }
        return effects + catchUp(index) + deliverHeld(index, now)
    }

    /// An app on the local socket has changed its state.
    mutating func appMoved(_ topic: Topic, to appState: AppState) throws {
        let index = try app(topic)
        if appState == .foreground {
            if state.foreground != topic { leaveForeground() }
            state.foreground = topic
        } else if state.foreground == topic {
            leaveForeground()
        }
        state.apps[index].state = appState
    }

    /// An app has disconnected from the local socket.
    mutating func appDisconnected(_ topic: Topic, _ now: WallTime) -> [PhoneEffect] {
        connectedApps.remove(topic)
        guard let index = state.apps.firstIndex(where: { $0.topic == topic }) else { return [] }
        if state.apps[index].state != .endedByUser {
            if state.foreground == topic { leaveForeground() }
            state.apps[index].state = .notRunning
        }
        let unfinished = state.runs.filter { $0.app == topic && $0.deadline != nil }
        return unfinished.flatMap { runEnded($0.number, .failed, now) }
    }

    // MARK: - Time

    /// The next time at which ``tick(_:)`` changes something, in UNIX seconds.
    var nextTick: Double? {
        let parts = [state.activities.nextTick, state.notifications.nextTick, state.pending.next]
        return (state.runs.compactMap(\.deadline) + parts.compactMap { $0 }).min()
    }

    /// Shows local notifications that are due, updates Live Activities, hides a banner, and ends the background runs of apps
    /// that have used up their time.
    mutating func tick(_ now: WallTime) -> [PhoneEffect] {
        for line in state.activities.tick(now.unixSeconds) { note(line, now) }
        state.notifications.tick(now.unixSeconds)
        let late = state.runs.filter { $0.deadline.map { $0 <= now.unixSeconds } ?? false }
        return endUnusedChannels() + late.flatMap { runEnded($0.number, .timedOut, now) } + showDue(now)
    }

    // MARK: - Look-ups and the log

    /// The index of the app that has a topic.
    func owner(of topic: Topic) -> Int? {
        state.apps.firstIndex { $0.information.topics.contains(topic) }
    }

    /// The index of an app.
    /// - Throws: ``DeviceError/Code/notPossible``.
    func app(_ topic: Topic) throws -> Int {
        guard let index = state.apps.firstIndex(where: { $0.topic == topic }) else {
            throw DeviceError(.notPossible, "there is no app \(topic) on this device")
        }
        return index
    }

    func name(_ index: Int) -> String { state.apps[index].information.name }

    mutating func nextNumber() -> Int {
        state.lastNumber += 1
        return state.lastNumber
    }

    mutating func note(_ text: String, _ now: WallTime) {
        log.append(PhoneSnapshot.Line(time: now.unixSeconds, text: text))
        if log.count > limits.lines { log.removeFirst(log.count - limits.lines) }
    }

    mutating func play(_ sound: Presentation.Sound, _ topic: Topic, _ now: WallTime) {
        var heard = PhoneSnapshot.Sound(id: "s\(nextNumber())", topic: topic, name: sound.name, time: now.unixSeconds)
        heard.critical = sound.isCritical
        heard.volume = sound.volume
        sounds.append(heard)
        if sounds.count > limits.sounds { sounds.removeFirst(sounds.count - limits.sounds) }
    }
}

extension WallTime {
    /// Seconds since the UNIX epoch, with their fraction.
    var unixSeconds: Double { Double(milliseconds) / 1000 }

    /// Makes a moment from seconds since the UNIX epoch; limited to the years 1 to 9999.
    package init(unixSeconds: Double) {
        let seconds = min(max(unixSeconds, JSON.times.lowerBound), JSON.times.upperBound)
        self.init(milliseconds: Int64(seconds * 1000))
    }
}
