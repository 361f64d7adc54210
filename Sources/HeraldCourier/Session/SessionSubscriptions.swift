import HeraldMailbox
import HeraldModel
import HeraldWire

/// What a session is subscribed to.
///
/// An array of small entries, since a device has a few apps and a service has many devices: thirty-two bytes for an app,
/// its name shared with the registry's.
struct SessionSubscriptions: Hashable, Sendable {
    /// An app with the granted QoS of each of its three filters.
    struct Entry: Hashable, Sendable {
        let topic: Topic
        let number: AppNumber
        /// The app's environment, if it is another than the session's.
        let environment: PushEnvironment?
        fileprivate var notifications: UInt8?
        fileprivate var token: UInt8?
        fileprivate var everything: UInt8?

        fileprivate subscript(filter: CourierFilter) -> UInt8? {
            get {
                switch filter {
                case .notifications: notifications
                case .token: token
                case .everything: everything
                case .channel: nil
                }
            }
            set {
                switch filter {
                case .notifications: notifications = newValue
                case .token: token = newValue
                case .everything: everything = newValue
                case .channel: break
                }
            }
        }

        fileprivate mutating func takeFilters(of other: Entry) {
            (notifications, token, everything) = (other.notifications, other.token, other.everything)
        }

        fileprivate var isEmpty: Bool { notifications == nil && token == nil && everything == nil }

        /// The QoS of the app's notifications, nil where no filter matches them.
        ///
        /// Where two filters overlap one copy is sent, at the higher QoS ([MQTT-3.3.4-2], MQTT 5 §3.3.4).
        var notificationQoS: UInt8? { Self.higher(notifications, everything) }

        /// The QoS of the app's token, nil where no filter matches it.
        var tokenQoS: UInt8? { Self.higher(token, everything) }

        private static func higher(_ left: UInt8?, _ right: UInt8?) -> UInt8? {
            guard let left, let right else { return left ?? right }
            return max(left, right)
        }
    }

    private(set) var entries: [Entry] = []
    /// Broadcast channels by their filter, with the granted QoS.
    private(set) var channels: [String: UInt8] = [:]

    var count: Int { entries.count + channels.count }

    func entry(_ topic: Topic) -> Entry? {
        entries.first { $0.topic == topic }
    }

    func entry(_ app: AppNumber) -> Entry? {
        entries.first { $0.number == app }
    }

    func contains(_ filter: CourierFilter) -> Bool {
        if let topic = filter.app { entry(topic)?[filter] != nil } else { channels[filter.name] != nil }
    }

    /// Adds a subscription, or replaces the one with the same filter ([MQTT-3.8.4-3]).
    ///
    /// A topic has one environment at a time: with a subscription in another one, all of its filters go there.
    /// - Parameters:
    ///   - filter: One of the app's three.
    ///   - app: The app as it is registered.
    ///   - environment: The app's environment, if it is another than the session's.
    ///   - qualityOfService: As it is granted.
    /// - Returns: The app of the other environment that the topic stood for until now.
    @discardableResult
    mutating func add(
        _ filter: CourierFilter,
        of app: RegisteredApp,
        in environment: PushEnvironment? = nil,
        qualityOfService: UInt8
    ) -> AppNumber? {
        if let index = entries.firstIndex(where: { $0.number == app.number }) {
            entries[index][filter] = qualityOfService
            return nil
        }
        var entry = Entry(topic: app.topic, number: app.number, environment: environment)
        let former = entries.firstIndex { $0.topic == app.topic }
        if let former { entry.takeFilters(of: entries[former]) }
        entry[filter] = qualityOfService
        guard let former else {
            entries.append(entry)
            return nil
        }
        defer { entries[former] = entry }
        return entries[former].number
    }

    mutating func add(channel: CourierFilter, qualityOfService: UInt8) {
        channels[channel.name] = qualityOfService
    }

    /// Removes a subscription, if it is there.
    mutating func remove(_ filter: CourierFilter) {
        guard let topic = filter.app else {
            channels[filter.name] = nil
            return
        }
        guard let index = entries.firstIndex(where: { $0.topic == topic }) else { return }
        entries[index][filter] = nil
        if entries[index].isEmpty { entries.remove(at: index) }
    }

    /// As a session's record keeps them: filter → QoS.
    var record: [String: UInt8] {
        var record = channels
        for entry in entries {
            for filter in CourierFilter.all(of: entry.topic) {
                if let qualityOfService = entry[filter] { record[filter.name] = qualityOfService }
            }
        }
        return record
    }

    /// As a session's record keeps them: the topics of other environments than the session's; nil if there are none.
    var environments: [String: PushEnvironment]? {
        var environments: [String: PushEnvironment] = [:]
        for entry in entries { environments[entry.topic.name] = entry.environment }
        return environments.isEmpty ? nil : environments
    }

    init() {}

    /// Reads a session's record.
    ///
    /// Filters of apps that are not registered any more are left out.
    init(record: [String: UInt8], environments: [String: PushEnvironment]? = nil, apps: [RegisteredApp]) {
        for (name, qualityOfService) in record {
            guard let filter = CourierFilter(name) else { continue }
            if let topic = filter.app {
                guard let app = apps.first(where: { $0.topic == topic }) else { continue }
                let environment = environments?[topic.name]
                add(filter, of: app, in: environment, qualityOfService: min(qualityOfService, 1))
            } else {
                add(channel: filter, qualityOfService: min(qualityOfService, 1))
            }
        }
    }
}
