public import HeraldModel
import HeraldWire

/// A broadcast channel of an app.
///
/// It is in the environment that the service's name selects, whatever the environment of the app's registration.
public struct DeviceChannel: Hashable, Sendable {
    /// The app's bundle identifier.
    public let topic: Topic
    private let channel: ChannelID

    /// The identifier as providers write it (`apns-channel-id`): base64.
    public var id: String { channel.base64 }

    /// Creates a channel.
    /// - Returns: nil if the identifier is not the base64 of 16 bytes, in either alphabet.
    public init?(_ id: String, of topic: Topic) {
        guard let channel = ChannelID(id) else { return nil }
        self.topic = topic
        self.channel = channel
    }

    /// The topic filter, which is also the topic of its broadcasts.
    var filter: String { CourierFilter.channel(bundle: topic, id: channel.topicLevel).name }
}
