import HeraldModel

/// A device's state across connections: the requests that the service has not confirmed, and the apps' tokens.
///
/// Each request has a new number, so that the answer to an earlier request does not confirm a later one.
struct DeviceMemory: Hashable, Sendable {
    /// A desired value, with the number of the request.
    struct Request<Value: Hashable & Sendable>: Hashable, Sendable {
        let value: Value
        let number: UInt64
    }

    /// The apps to register, in the order of installation.
    private(set) var apps: [Request<DeviceApp>] = []
    /// Unconfirmed removals of apps, with the environment of the registration.
    private(set) var removals: [Request<DeviceApp>] = []
    /// The subscribed channels, in the order of subscription.
    private(set) var channels: [Request<DeviceChannel>] = []
    /// Channels whose subscription is to end on this connection; the next one begins without them.
    private(set) var endedChannels: [Request<DeviceChannel>] = []
    /// Unconfirmed settings of apps.
    private(set) var settings: [Topic: Request<Bool>] = [:]
    /// The unconfirmed power mode.
    private(set) var saving: Request<Bool>?
    var hasNetwork = true
    /// The version of the service's announcement that the device has; nil if it follows none.
    var announcement: Int64?
    /// The apps' device tokens, which are presented on each connect, as devices do with APNs.
    private(set) var tokens: [Topic: DeviceToken] = [:]
    /// The notifications that were reported.
    var seen = SeenNotifications()
    private var lastNumber: UInt64 = 0

    init(apps: [DeviceApp] = []) {
        for app in apps { install(app) }
    }

    // MARK: - Requests

    mutating func install(_ app: DeviceApp) {
        // The registration in the other environment would outlive its app.
        if let old = apps.first(where: { $0.value.topic == app.topic })?.value, old != app {
            remove(old.topic, in: nil)
        }
        let request = request(app)
        if let index = apps.firstIndex(where: { $0.value.topic == app.topic }) {
            apps[index] = request
        } else {
            apps.append(request)
        }
    }

    mutating func remove(_ topic: Topic, in environment: PushEnvironment?) {
        let installed = apps.first { $0.value.topic == topic }?.value
        let app = installed ?? DeviceApp(topic: topic, environment: environment)
        apps.removeAll { $0.value.topic == topic }
        removals.removeAll { $0.value == app }
        removals.append(request(app))
        settings[topic] = nil
        tokens[topic] = nil
    }

    mutating func subscribe(to channel: DeviceChannel) {
        channels.removeAll { $0.value == channel }
        channels.append(request(channel))
    }

    mutating func unsubscribe(from channel: DeviceChannel) {
        channels.removeAll { $0.value == channel }
        endedChannels.removeAll { $0.value == channel }
        endedChannels.append(request(channel))
    }

    mutating func setEnabled(_ enabled: Bool, for topic: Topic) {
        guard isInstalled(topic) else { return }
        settings[topic] = request(enabled)
    }

    mutating func setSaving(_ saving: Bool) {
        self.saving = request(saving)
    }

    private mutating func request<Value>(_ value: Value) -> Request<Value> {
        lastNumber += 1
        return Request(value: value, number: lastNumber)
    }

    func isInstalled(_ topic: Topic) -> Bool {
        apps.contains { $0.value.topic == topic }
    }

    func isSubscribed(to channel: DeviceChannel) -> Bool {
        channels.contains { $0.value == channel }
    }

    func isBeingRemoved(_ topic: Topic) -> Bool {
        removals.contains { $0.value.topic == topic }
    }

    // MARK: - Confirmations

    /// - Returns: The app; nil if a later removal of it is still unconfirmed.
    mutating func confirmRemoval(_ number: UInt64) -> Topic? {
        guard let index = removals.firstIndex(where: { $0.number == number }) else { return nil }
        return removals.remove(at: index).value.topic
    }

    mutating func confirmEndedChannel(_ number: UInt64) {
        endedChannels.removeAll { $0.number == number }
    }

    /// Forgets ended subscriptions: a connection begins without any.
    mutating func forgetEndedChannels() {
        endedChannels = []
    }

    /// - Returns: The user's setting; nil if it is not this one any more.
    mutating func confirmSettings(_ topic: Topic, _ number: UInt64) -> Bool? {
        guard settings[topic]?.number == number else { return nil }
        return settings.removeValue(forKey: topic)?.value
    }

    mutating func confirmSaving(_ number: UInt64) {
        if saving?.number == number { saving = nil }
    }

    mutating func hold(_ token: DeviceToken, for topic: Topic) {
        tokens[topic] = token
    }

    /// Drops the apps' tokens, which the service does not accept; the apps get new ones.
    mutating func forgetTokens() {
        tokens = [:]
    }
}
