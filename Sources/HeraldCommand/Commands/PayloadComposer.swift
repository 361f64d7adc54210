import Foundation
import HeraldModel

/// Composes the payload of the options that `herald send` has for it.
struct PayloadComposer: Hashable, Sendable {
    var alert: String?
    var title: String?
    var badge: Int?
    var sound: String?

    /// Whether anything was typed.
    var isEmpty: Bool {
        alert == nil && title == nil && badge == nil && sound == nil
    }

    /// The payload as compact JSON.
    ///
    /// A background push without text has `content-available` only.
    func payload(for pushType: PushType) throws -> [UInt8] {
        let isSilent = isEmpty && pushType == .background
        let aps = Aps(
            alert: words,
            badge: badge,
            sound: sound,
            contentAvailable: isSilent ? 1 : nil
        )
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        return Array(try encoder.encode(Payload(aps: aps)))
    }

    /// A text where there is only one, a dictionary where there is a title.
    private var words: Alert? {
        if let title { return .titled(title, body: alert) }
        return alert.map { .body($0) }
    }

    private struct Payload: Encodable {
        let aps: Aps
    }

    private struct Aps: Encodable {
        let alert: Alert?
        let badge: Int?
        let sound: String?
        let contentAvailable: Int?

        enum CodingKeys: String, CodingKey {
            case alert
            case badge
            case sound
            case contentAvailable = "content-available"
        }
    }

    private enum Alert: Encodable {
        case body(String)
        case titled(String, body: String?)

        enum CodingKeys: String, CodingKey {
            case title
            case body
        }

        func encode(to encoder: any Encoder) throws {
            switch self {
            case .body(let text):
                var container = encoder.singleValueContainer()
                try container.encode(text)
            case .titled(let title, let body):
                var container = encoder.container(keyedBy: CodingKeys.self)
                try container.encode(title, forKey: .title)
                try container.encodeIfPresent(body, forKey: .body)
            }
        }
    }
}
