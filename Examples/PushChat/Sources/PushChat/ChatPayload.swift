import Foundation

/// The notification of a message.
///
/// The server writes the title in the receiver's language. `REPLY` is a key of the app's texts: the device shows the button's
/// title in the user's language.
struct ChatPayload: Sendable {
    let author: String
    let text: String
    let title: String
    /// The number of unseen messages, including this one.
    let badge: Int
    /// Its number.
    let message: Int64

    private struct Content: Encodable {
        struct APS: Encodable {
            struct Alert: Encodable {
                let actionLocKey = "REPLY"
                let body: String
                let title: String

                enum CodingKeys: String, CodingKey {
                    case body
                    case title
                    case actionLocKey = "action-loc-key"
                }
            }

            let alert: Alert
            let badge: Int
            let sound = "beep.caf"
        }

        let aps: APS
        let message: Int64
    }

    /// The payload.
    ///
    /// A long text is cut; the app fetches the whole.
    func json(limit: Int) throws -> String {
        let whole = try encoded(text)
        guard whole.utf8.count > limit else { return whole }
        let characters = Array(text)
        // The longest beginning that fits.
        var fits = 0
        var tooLong = characters.count
        while tooLong - fits > 1 {
            let middle = (fits + tooLong) / 2
            let isGood = try encoded(characters[..<middle] + "…").utf8.count <= limit
            if isGood { fits = middle } else { tooLong = middle }
        }
        return try encoded(characters[..<fits] + "…")
    }

    private func encoded(_ text: some Sequence<Character>) throws -> String {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        let alert = Content.APS.Alert(body: "\(author): \(String(text))", title: title)
        let content = Content(aps: Content.APS(alert: alert, badge: badge), message: message)
        return String(decoding: try encoder.encode(content), as: UTF8.self)
    }
}
