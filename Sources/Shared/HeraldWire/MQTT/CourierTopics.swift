package import HeraldModel

/// The topics of the device contract: a closed set, each with one spelling.
///
/// Topics are compared byte for byte ([MQTT-4.7.3-4]). Nothing is normalized, and every byte of a ``Topic`` is ASCII, so
/// that no two spellings name the same app.
package enum CourierTopic: Hashable, Sendable {
    /// `apps/<topic>`: notifications.
    case notifications(Topic)
    /// `apps/<topic>/token`: the device token; from the device, the token that it holds.
    case token(Topic)
    /// `apps/<topic>/settings`: whether the user wants notifications of the app.
    case settings(Topic)
    /// `device/power`: whether the device saves power.
    case power
    /// `device/service`: what the service announces; from the device, the announcement that it has.
    case service
    /// `channels/<bundle id>/<channel id>`: broadcasts.
    case channel(bundle: Topic, id: String)

    /// Reads a topic name; nil for every other topic.
    package init?(_ name: String) {
        guard let levels = CourierLevels(name) else { return nil }
        switch (levels.head, levels.topic, levels.tail) {
        case (.apps, let topic?, nil): self = .notifications(topic)
        case (.apps, let topic?, "token"?): self = .token(topic)
        case (.apps, let topic?, "settings"?): self = .settings(topic)
        case (.channels, let topic?, let id?) where CourierLevels.isChannel(id): self = .channel(bundle: topic, id: id)
        case (.power, _, _): self = .power
        case (.service, _, _): self = .service
        default: return nil
        }
    }

    package var name: String {
        switch self {
        case .notifications(let topic): "apps/\(topic.name)"
        case .token(let topic): "apps/\(topic.name)/token"
        case .settings(let topic): "apps/\(topic.name)/settings"
        case .power: "device/power"
        case .service: "device/service"
        case .channel(let bundle, let id): "channels/\(bundle.name)/\(id)"
        }
    }
}

/// The topic filters that a device may subscribe to: a closed set without a wildcard engine.
package enum CourierFilter: Hashable, Sendable {
    /// `apps/<topic>`.
    case notifications(Topic)
    /// `apps/<topic>/token`.
    case token(Topic)
    /// `apps/<topic>/#`, which also matches `apps/<topic>` itself (MQTT 5 §4.7.1.2).
    case everything(Topic)
    /// `channels/<bundle id>/<channel id>`.
    case channel(bundle: Topic, id: String)
    /// `device/service`.
    case service

    /// Reads a topic filter; nil for every other filter.
    package init?(_ filter: String) {
        guard let levels = CourierLevels(filter) else { return nil }
        switch (levels.head, levels.topic, levels.tail) {
        case (.apps, let topic?, nil): self = .notifications(topic)
        case (.apps, let topic?, "token"?): self = .token(topic)
        case (.apps, let topic?, "#"?): self = .everything(topic)
        case (.channels, let topic?, let id?) where CourierLevels.isChannel(id): self = .channel(bundle: topic, id: id)
        case (.service, _, _): self = .service
        default: return nil
        }
    }

    package var name: String {
        switch self {
        case .service: CourierTopic.service.name
        case .notifications(let topic): "apps/\(topic.name)"
        case .token(let topic): "apps/\(topic.name)/token"
        case .everything(let topic): "apps/\(topic.name)/#"
        case .channel(let bundle, let id): "channels/\(bundle.name)/\(id)"
        }
    }

    /// The app that the filter registers; nil for a channel and `device/service`.
    package var app: Topic? {
        switch self {
        case .notifications(let topic), .token(let topic), .everything(let topic): topic
        case .channel, .service: nil
        }
    }

    /// The app's three filters.
    package static func all(of topic: Topic) -> [CourierFilter] {
        [.everything(topic), .notifications(topic), .token(topic)]
    }

    package var matchesNotifications: Bool {
        switch self {
        case .notifications, .everything: true
        case .token, .channel, .service: false
        }
    }

    package var matchesToken: Bool {
        switch self {
        case .token, .everything: true
        case .notifications, .channel, .service: false
        }
    }
}

/// The reason to refuse a filter that is not of the device contract.
package enum CourierFilterFault: Hashable, Sendable {
    /// Not a filter by the rules of MQTT: a `#` that is not the last level, a wildcard that shares its level with other
    /// characters ([MQTT-4.7.1-1], [MQTT-4.7.1-2]), or a shared subscription without a name or filter ([MQTT-4.8.2-1]).
    case malformed
    case shared
    /// A valid filter for topics that are not the device's.
    case foreign

    package init(_ filter: String) {
        let levels = filter.utf8.split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false)
        let isShared = levels.first?.elementsEqual("$share".utf8) ?? false
        let wildcards: (UInt8) -> Bool = { $0 == UInt8(ascii: "#") || $0 == UInt8(ascii: "+") }
        for (index, level) in levels.enumerated() where level.contains(where: wildcards) {
            let isLast = index == levels.count - 1
            guard level.count == 1, level.first != UInt8(ascii: "#") || isLast, !(isShared && index == 1) else {
                self = .malformed
                return
            }
        }
        if isShared {
            self = levels.count > 2 && !levels[1].isEmpty && !levels[2...].allSatisfy(\.isEmpty) ? .shared : .malformed
        } else {
            self = .foreign
        }
    }
}

/// The levels of a topic name or filter.
private struct CourierLevels {
    enum Head { case apps, channels, power, service }

    let head: Head
    let topic: Topic?
    let tail: String?

    /// Nil for a longer text, or one that is not ASCII: neither is a topic of the device contract.
    ///
    /// The check also makes it safe to compare strings below: Swift compares by canonical equivalence, which could take
    /// another character for an ASCII one (U+212A for K).
    init?(_ text: String) {
        // On the bytes where they lie: a device that comes back has each of its filters read.
        var text = text
        let levels = text.withUTF8 { CourierLevels(bytes: $0) }
        guard let levels else { return nil }
        self = levels
    }

    private init?(bytes: UnsafeBufferPointer<UInt8>) {
        guard bytes.count <= 512, bytes.allSatisfy({ $0 < 0x80 }) else { return nil }
        guard let first = bytes.firstIndex(of: UInt8(ascii: "/")) else { return nil }
        let rest = bytes[(first + 1)...]
        let second = rest.firstIndex(of: UInt8(ascii: "/"))
        if let second {
            let last = rest[(second + 1)...]
            guard !last.contains(UInt8(ascii: "/")) else { return nil }
            tail = String(decoding: last, as: UTF8.self)
        } else {
            tail = nil
        }
        let middle = rest[..<(second ?? rest.endIndex)]
        switch bytes[..<first] {
        case let name where name.elementsEqual("apps".utf8): head = .apps
        case let name where name.elementsEqual("channels".utf8): head = .channels
        case let name where name.elementsEqual("device".utf8) && tail == nil && middle.elementsEqual("power".utf8):
            head = .power
            topic = nil
            return
        case let name where name.elementsEqual("device".utf8) && tail == nil && middle.elementsEqual("service".utf8):
            head = .service
            topic = nil
            return
        default: return nil
        }
        guard let topic = Topic(utf8: middle) else { return nil }
        self.topic = topic
    }

    /// A channel identifier is base64 (Apple, "Sending channel management requests to APNs"); its `/` is spelled `_` and
    /// its `+` is spelled `-` in a topic, where both mean something else (RFC 4648 §5).
    static func isChannel(_ id: String) -> Bool {
        (1...64).contains(id.utf8.count)
            && id.utf8.allSatisfy { $0.isASCIINameByte && $0 != UInt8(ascii: ".") || $0 == UInt8(ascii: "=") }
    }
}
