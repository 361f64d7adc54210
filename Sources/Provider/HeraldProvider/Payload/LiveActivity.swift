import HeraldJSON
public import HeraldModel

/// Change of a Live Activity, for push type ``PushType/liveactivity`` ("Starting and updating Live Activities with
/// ActivityKit push notifications").
public struct LiveActivity: Sendable {
    /// Kind of change.
    public enum Event: String, Hashable, Sendable {
        /// Starts the activity; needs an alert and the attributes.
        case start
        /// Updates its content.
        case update
        /// Ends it, with its last content.
        case end
    }

    /// Kind of change.
    public var event: Event
    /// Time of the content; the device ignores a change that is older than what it shows.
    public var timestamp: WallTime
    /// New content, a JSON object.
    public var contentState: [UInt8] { JSON.object(content).bytes }
    /// Time from which the content counts as outdated.
    public var staleDate: WallTime?
    /// Time at which the device removes an ended activity from the screen; a past time removes it at once.
    public var dismissalDate: WallTime?
    /// With ``Event/start``: name of the Swift type of the attributes.
    public private(set) var attributesType: String?
    /// With ``Event/start``: attributes that never change, a JSON object.
    public var attributes: [UInt8]? { staticContent.map { JSON.object($0).bytes } }
    /// With ``Event/start``: asks the app for a token for updates (`input-push-token`).
    public var asksForToken = false
    /// With ``Event/start``: identifier of the channel whose broadcasts update the activity (`input-push-channel`).
    public var channel: String?

    private let content: JSON.Object
    private var staticContent: JSON.Object?

    /// Makes an update or the end of an activity.
    /// - Parameters:
    ///   - event: ``Event/update`` or ``Event/end``.
    ///   - contentState: The content. The client encodes it with the default settings of `JSONEncoder`, as the system expects.
    ///   - timestamp: Time of the content.
    /// - Throws: ``ProviderError/Code/badRequest`` if the content does not encode to a JSON object.
    public init(_ event: Event = .update, contentState: some Encodable, timestamp: WallTime) throws {
        self.event = event
        self.timestamp = timestamp
        content = try JSON.Object(of: contentState, "the content state")
    }

    /// Makes the start of an activity, whose attributes have a Swift type of that name and never change.
    /// - Throws: ``ProviderError/Code/badRequest`` if attributes or content do not encode to a JSON object.
    public init(
        starting attributesType: String,
        attributes: some Encodable,
        contentState: some Encodable,
        timestamp: WallTime
    ) throws {
        try self.init(.start, contentState: contentState, timestamp: timestamp)
        self.attributesType = attributesType
        staticContent = try JSON.Object(of: attributes, "the attributes")
    }
}

extension LiveActivity {
    func write(to aps: inout JSON.Object) {
        aps["event"] = .string(event.rawValue)
        aps["timestamp"] = .number(JSON.Number(timestamp.seconds))
        aps["content-state"] = .object(content)
        aps["stale-date"] = staleDate.map { .number(JSON.Number($0.seconds)) }
        aps["dismissal-date"] = dismissalDate.map { .number(JSON.Number($0.seconds)) }
        aps["attributes-type"] = attributesType.map { .string($0) }
        aps["attributes"] = staticContent.map { .object($0) }
        aps["input-push-token"] = asksForToken ? .number(1) : nil
        aps["input-push-channel"] = channel.map { .string($0) }
    }
}
