import HeraldModel
import HeraldWire

/// The subscriptions of a session.
///
/// An array of small entries in the order of their topics, since a device has a few apps and a service has many devices:
/// thirty-two bytes for an app, with its name shared with the registry's. A ``SubscriptionTable`` changes many at once.
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
                case .channel, .service: nil
                }
            }
            set {
                switch filter {
                case .notifications: notifications = newValue
                case .token: token = newValue
                case .everything: everything = newValue
                case .channel, .service: break
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

    let entries: [Entry]
    /// Subscriptions without an app, to broadcast channels and `device/service`: by the filter, with the granted QoS.
    let channels: [String: UInt8]

    /// The QoS of the service's announcements; nil if the device does not ask for them.
    var serviceQoS: UInt8? { channels[CourierFilter.service.name] }

    var count: Int { entries.count + channels.count }

    func entry(_ topic: Topic) -> Entry? {
        var (low, high) = (0, entries.count)
        while low < high {
            let middle = (low + high) / 2
            if entries[middle].topic.name < topic.name { low = middle + 1 } else { high = middle }
        }
        guard low < entries.count, entries[low].topic == topic else { return nil }
        return entries[low]
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

    /// As a session's record keeps them: the topics in another environment than the session's; nil if there are none.
    var environments: [String: PushEnvironment]? {
        var environments: [String: PushEnvironment] = [:]
        for entry in entries { environments[entry.topic.name] = entry.environment }
        return environments.isEmpty ? nil : environments
    }

    init(_ table: SubscriptionTable = SubscriptionTable()) {
        entries = table.entries.values.sorted { $0.topic.name < $1.topic.name }
        channels = table.channels
    }

    /// Reads a session's record, without the filters of apps that are no longer registered.
    init(record: [String: UInt8], environments: [String: PushEnvironment]? = nil, apps: [RegisteredApp]) {
        let apps = Dictionary(apps.map { ($0.topic, $0) }) { first, _ in first }
        var table = SubscriptionTable()
        for (name, qualityOfService) in record {
            guard let filter = CourierFilter(name) else { continue }
            if let topic = filter.app {
                guard let app = apps[topic] else { continue }
                let environment = environments?[topic.name]
                table.add(filter, of: app, in: environment, qualityOfService: min(qualityOfService, 1))
            } else {
                table.channels[filter.name] = min(qualityOfService, 1)
            }
        }
        self.init(table)
    }
}

/// The subscriptions of a session while a packet changes them: each lookup takes the same time, however many there are.
struct SubscriptionTable {
    typealias Entry = SessionSubscriptions.Entry

    private(set) var entries: [Topic: Entry] = [:]
    /// As ``SessionSubscriptions/channels``.
    var channels: [String: UInt8] = [:]

    init() {}

    init(_ subscriptions: SessionSubscriptions) {
        entries = Dictionary(subscriptions.entries.map { ($0.topic, $0) }) { first, _ in first }
        channels = subscriptions.channels
    }

    var count: Int { entries.count + channels.count }

    func contains(_ filter: CourierFilter) -> Bool {
        if let topic = filter.app { entries[topic]?[filter] != nil } else { channels[filter.name] != nil }
    }

    /// Adds a subscription, or replaces the one with the same filter ([MQTT-3.8.4-3]).
    ///
    /// A topic has one environment at a time: with a subscription in another one, all of its filters go there.
    /// `filter` is one of the app's three, and `qualityOfService` is as it is granted. `environment` is nil if it is
    /// the session's.
    /// - Returns: The entry of the other environment that the topic had until now.
    @discardableResult
    mutating func add(
        _ filter: CourierFilter,
        of app: RegisteredApp,
        in environment: PushEnvironment? = nil,
        qualityOfService: UInt8
    ) -> Entry? {
        let former = entries[app.topic]
        var entry = Entry(topic: app.topic, number: app.number, environment: environment)
        if let former {
            if former.number == app.number { entry = former } else { entry.takeFilters(of: former) }
        }
        entry[filter] = qualityOfService
        entries[app.topic] = entry
        return former?.number == app.number ? nil : former
    }

    mutating func remove(_ filter: CourierFilter) {
        guard let topic = filter.app else {
            channels[filter.name] = nil
            return
        }
        entries[topic]?[filter] = nil
        if entries[topic]?.isEmpty ?? false { entries[topic] = nil }
    }
}
