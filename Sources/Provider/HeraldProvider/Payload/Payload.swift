import HeraldJSON
public import HeraldModel

/// The `aps` dictionary, typed ("Generating a remote notification").
///
/// ``encoded(for:custom:)`` adds custom data of any `Encodable` type. For keys that this type lacks, encode the payload
/// yourself.
public struct Payload: Sendable {
    /// Visible content.
    public var alert: Alert?
    /// Number on the app's icon; 0 removes it, nil leaves it unchanged.
    public var badge: Int?
    /// Sound.
    public var sound: Sound?
    /// Thread identifier, which groups notifications (`thread-id`).
    public var threadID: String?
    /// Category, which selects the actions; needs an alert.
    public var category: String?
    /// Wakes the app (`content-available`); without an alert it is a background push.
    public var isContentAvailable = false
    /// Passes the notification to the app's service extension first (`mutable-content`); needs an alert.
    public var isMutable = false
    /// Window to bring forward (`target-content-id`).
    public var targetContentID: String?
    /// Permitted degree of interruption (`interruption-level`).
    public var interruptionLevel: InterruptionLevel?
    /// Position in the notification summary (`relevance-score`): 0 to 1, any number for Live Activities.
    public var relevanceScore: Double?
    /// Value that a Focus filter compares (`filter-criteria`).
    public var filterCriteria: String?
    /// Change of a Live Activity.
    public var liveActivity: LiveActivity?
    /// Makes widgets and controls reload (`content-changed`).
    public var isContentChanged = false
    /// Values for the URL template of a website (`url-args`).
    public var urlArguments: [String] = []

    /// Makes a payload with an empty `aps`.
    public init() {}

    /// Makes a payload with a text.
    public init(_ text: String) {
        alert = Alert(text)
    }

    /// Makes a payload with an alert.
    public init(alert: Alert) {
        self.alert = alert
    }

    /// Makes a silent payload that wakes the app, for push type ``PushType/background``.
    public static var background: Payload {
        var payload = Payload()
        payload.isContentAvailable = true
        return payload
    }

    /// Makes a payload for push types ``PushType/widgets`` and ``PushType/controls``.
    public static var contentChanged: Payload {
        var payload = Payload()
        payload.isContentChanged = true
        return payload
    }

    /// Permitted degree of interruption.
    public enum InterruptionLevel: String, Hashable, Sendable, CaseIterable {
        /// Only in the notification list.
        case passive
        /// Screen and sound; the default.
        case active
        /// Even during a Focus.
        case timeSensitive = "time-sensitive"
        /// Even with the mute switch on; the app needs an entitlement.
        case critical
    }
}

extension Payload {
    /// Encodes the payload as compact JSON.
    /// - Parameter pushType: Push type, which sets the maximum length.
    /// - Returns: A value for ``PushRequest/payload``.
    /// - Throws: ``ProviderError/Code/badRequest`` if it is too long, or if a number is infinite or not a number.
    public func encoded(for pushType: PushType) throws -> [UInt8] {
        try checked([:], pushType.maximumPayloadBytes, "a push of type \(pushType.rawValue)")
    }

    /// Encodes the payload as compact JSON, with custom data beside `aps`.
    ///
    /// The push type sets the maximum length. The custom data encodes to a JSON object without the key `aps`.
    /// - Returns: A value for ``PushRequest/payload``.
    /// - Throws: ``ProviderError/Code/badRequest`` as ``encoded(for:)``, or if `custom` is not an object or has the key `aps`.
    public func encoded(for pushType: PushType, custom: some Encodable) throws -> [UInt8] {
        let custom = try JSON.Object(of: custom, "the custom data")
        guard custom["aps"] == nil else {
            throw ProviderError(
                .badRequest,
                "the custom data has the key aps: use other names beside it"
            )
        }
        return try checked(custom, pushType.maximumPayloadBytes, "a push of type \(pushType.rawValue)")
    }

    /// Encodes the payload of a broadcast as compact JSON.
    /// - Throws: ``ProviderError/Code/badRequest`` if it has more than 5,120 bytes.
    public func encodedForBroadcast() throws -> [UInt8] {
        try checked([:], BroadcastChannel.maximumPayloadBytes, "a broadcast")
    }

    /// The object with `aps` and the custom members behind it.
    private func checked(_ custom: JSON.Object, _ limit: Int, _ what: String) throws -> [UInt8] {
        let aps: JSON.Object = ["aps": .object(try aps())]
        let bytes = JSON.object(aps.merging(custom)).bytes
        guard bytes.count <= limit else {
            throw ProviderError(
                .badRequest,
                "the payload has \(bytes.count) bytes, the limit for \(what) is \(limit): shorten it"
            )
        }
        return bytes
    }

    private func aps() throws -> JSON.Object {
        var aps = JSON.Object()
        if let alert {
            if liveActivity != nil {
                // In a Live Activity the alert contains the sound, and localized texts are objects.
                aps["alert"] = alert.json(ofActivity: true, sound: try sound?.json())
            } else {
                aps["alert"] = alert.plainText.map { .string($0) } ?? alert.json(ofActivity: false, sound: nil)
            }
        }
        aps["badge"] = badge.map { .number(JSON.Number($0)) }
        if liveActivity == nil || alert == nil { aps["sound"] = try sound?.json() }
        aps["thread-id"] = threadID.map { .string($0) }
        aps["category"] = category.map { .string($0) }
        aps["content-available"] = isContentAvailable ? .number(1) : nil
        aps["mutable-content"] = isMutable ? .number(1) : nil
        aps["target-content-id"] = targetContentID.map { .string($0) }
        aps["interruption-level"] = interruptionLevel.map { .string($0.rawValue) }
        aps["relevance-score"] = try relevanceScore.map { try JSON(fraction: $0, of: "relevance-score") }
        aps["filter-criteria"] = filterCriteria.map { .string($0) }
        aps["content-changed"] = isContentChanged ? .boolean(true) : nil
        aps["url-args"] = JSON(texts: urlArguments)
        liveActivity?.write(to: &aps)
        return aps
    }
}
