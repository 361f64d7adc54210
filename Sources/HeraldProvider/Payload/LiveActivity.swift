import Foundation
public import HeraldModel

/// How a push of type ``PushType/liveactivity`` changes a Live Activity ("Starting and updating Live Activities with
/// ActivityKit push notifications").
public struct LiveActivity: Sendable {
    /// What happens to the activity.
    public enum Event: String, Hashable, Sendable {
        /// It is shown; needs an alert, and the attributes.
        case start
        /// Its state changes.
        case update
        /// It ends, with its last state.
        case end
    }

    /// What happens.
    public var event: Event
    /// When the state was so; one that is older than what is shown is ignored.
    public var timestamp: WallTime
    /// The new state, JSON.
    public private(set) var contentState: [UInt8]
    /// From when on the state counts as outdated.
    public var staleDate: WallTime?
    /// When an ended activity is taken off the screen; a time that has passed does it at once.
    public var dismissalDate: WallTime?
    /// With ``Event/start``: the name of the Swift type of the attributes.
    public private(set) var attributesType: String?
    /// With ``Event/start``: what never changes of the activity, JSON.
    public private(set) var attributes: [UInt8]?
    /// With ``Event/start``: whether the app is to get a token for updates (`input-push-token`).
    public var asksForToken = false
    /// With ``Event/start``: the channel whose broadcasts update the activity (`input-push-channel`).
    public var channel: String?

    /// Makes a change to an activity that is shown.
    /// - Parameters:
    ///   - event: ``Event/update`` or ``Event/end``.
    ///   - contentState: The state, written as JSON as `JSONEncoder` does by default: so the system reads it.
    ///   - timestamp: When the state was so.
    /// - Throws: ``ProviderError/Code/badRequest`` if the state is not written as a JSON object.
    public init(_ event: Event = .update, contentState: some Encodable, timestamp: WallTime) throws {
        self.event = event
        self.timestamp = timestamp
        self.contentState = try PayloadWriter.object(contentState, "the content state")
    }

    /// Makes the start of an activity.
    /// - Parameters:
    ///   - attributesType: The name of the Swift type of the attributes.
    ///   - attributes: What never changes of the activity.
    ///   - contentState: Its first state.
    ///   - timestamp: When the state was so.
    /// - Throws: ``ProviderError/Code/badRequest`` if attributes or state are not written as JSON objects.
    public init(
        starting attributesType: String,
        attributes: some Encodable,
        contentState: some Encodable,
        timestamp: WallTime
    ) throws {
        try self.init(.start, contentState: contentState, timestamp: timestamp)
        self.attributesType = attributesType
        self.attributes = try PayloadWriter.object(attributes, "the attributes")
    }
}
