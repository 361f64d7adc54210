import HeraldJSON
import HeraldModel
import HeraldService

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
    func payload(for pushType: PushType) -> [UInt8] {
        var aps = JSON.Object()
        // A text where there is only one, an object where there is a title.
        if let title {
            var words = JSON.Object()
            words["body"] = alert.map { .string($0) }
            words["title"] = .string(title)
            aps["alert"] = .object(words)
        } else {
            aps["alert"] = alert.map { .string($0) }
        }
        aps["badge"] = badge.map { .number(JSON.Number($0)) }
        aps["sound"] = sound.map { .string($0) }
        if isEmpty, pushType == .background { aps["content-available"] = .number(1) }
        return JSON.object(["aps": .object(aps)]).bytes
    }
}
