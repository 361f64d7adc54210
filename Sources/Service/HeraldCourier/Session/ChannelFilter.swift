import HeraldModel
import HeraldWire

/// A filter for a possible channel: `channels/<bundle id>/<channel id>`, the identifier in its one spelling.
struct ChannelFilter: Hashable, Sendable {
    let bundle: Topic
    let id: ChannelID

    /// Nil for every other filter, and for an identifier that no service makes.
    init?(_ filter: CourierFilter?) {
        guard case .channel(let bundle, let text) = filter, let id = ChannelID(topicLevel: text) else { return nil }
        self.bundle = bundle
        self.id = id
    }

    var name: String { CourierFilter.channel(bundle: bundle, id: id.topicLevel).name }
}
