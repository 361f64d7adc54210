import HeraldModel

/// What a device knows from one connection to the next: what it wants the service to know, and what it was given.
///
/// A wish is numbered each time that it is wished, so that an answer to an earlier one does not count for a later one.
struct DeviceMemory: Hashable, Sendable {
    /// Something that is to be so, with the number of the wish.
    struct Wish<Value: Hashable & Sendable>: Hashable, Sendable {
        let value: Value
        let number: UInt64
    }

    /// Apps that are to be registered, in the order in which they were installed.
    private(set) var apps: [Wish<DeviceApp>] = []
    /// Apps whose removal is not confirmed, each with the environment that it is registered in.
    private(set) var removals: [Wish<DeviceApp>] = []
    /// Switches of apps that are not confirmed.
    private(set) var settings: [Topic: Wish<Bool>] = [:]
    /// The power mode, if it is not confirmed.
    private(set) var saving: Wish<Bool>?
    var hasNetwork = true
    /// The device tokens that the apps hold: presented on each connect, as APNs has devices do.
    private(set) var tokens: [Topic: DeviceToken] = [:]
    /// What was reported.
    var seen = SeenNotifications()
    private var lastNumber: UInt64 = 0

    init(apps: [DeviceApp] = []) {
        for app in apps { install(app) }
    }

    // What is wished.

    mutating func install(_ app: DeviceApp) {
        // The registration of the other environment would outlive its app.
        if let old = apps.first(where: { $0.value.topic == app.topic })?.value, old != app {
            remove(old.topic, in: nil)
        }
        let wish = wish(app)
        if let index = apps.firstIndex(where: { $0.value.topic == app.topic }) {
            apps[index] = wish
        } else {
            apps.append(wish)
        }
    }

    mutating func remove(_ topic: Topic, in environment: PushEnvironment?) {
        let installed = apps.first { $0.value.topic == topic }?.value
        let app = installed ?? DeviceApp(topic: topic, environment: environment)
        apps.removeAll { $0.value.topic == topic }
        removals.removeAll { $0.value == app }
        removals.append(wish(app))
        settings[topic] = nil
        tokens[topic] = nil
    }

    mutating func setEnabled(_ enabled: Bool, for topic: Topic) {
        guard isInstalled(topic) else { return }
        settings[topic] = wish(enabled)
    }

    mutating func setSaving(_ saving: Bool) {
        self.saving = wish(saving)
    }

    private mutating func wish<Value>(_ value: Value) -> Wish<Value> {
        lastNumber += 1
        return Wish(value: value, number: lastNumber)
    }

    func isInstalled(_ topic: Topic) -> Bool {
        apps.contains { $0.value.topic == topic }
    }

    func isBeingRemoved(_ topic: Topic) -> Bool {
        removals.contains { $0.value.topic == topic }
    }

    // What the service confirms.

    /// - Returns: Whether this was the last word about the app: another removal of it is still to be confirmed if not.
    mutating func confirmRemoval(_ number: UInt64) -> Topic? {
        guard let index = removals.firstIndex(where: { $0.number == number }) else { return nil }
        return removals.remove(at: index).value.topic
    }

    /// - Returns: Whether that is what the user wants by now.
    mutating func confirmSettings(_ topic: Topic, _ number: UInt64) -> Bool {
        guard settings[topic]?.number == number else { return false }
        settings[topic] = nil
        return true
    }

    mutating func confirmSaving(_ number: UInt64) {
        if saving?.number == number { saving = nil }
    }

    mutating func hold(_ token: DeviceToken, for topic: Topic) {
        tokens[topic] = token
    }

    /// The service does not know the tokens that the apps hold: they get others.
    mutating func forgetTokens() {
        tokens = [:]
    }
}
