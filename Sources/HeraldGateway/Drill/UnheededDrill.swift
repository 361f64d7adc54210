import Foundation

/// A drill that a payload asks for where payloads may not have any.
///
/// The notification is delivered all the same, because a production payload must not break. But a test that asks for a failure
/// must not pass without one, so answer and journal say it.
enum UnheededDrill {
    /// The words of an answer.
    static let words = "; the payload's herald.drill has no effect: the service has payload drills off (payload-drills)"

    /// The words about a caught notification of the binary interface.
    static let wordsOfBinary = "; the payload's herald.drill has no effect: the binary interface has no drills"

    private struct Payload: Decodable {
        struct Herald: Decodable {
            private enum Key: String, CodingKey {
                case drill
            }

            let hasDrill: Bool

            init(from decoder: any Decoder) throws {
                let container = try decoder.container(keyedBy: Key.self)
                hasDrill = try container.contains(.drill) && !container.decodeNil(forKey: .drill)
            }
        }

        let herald: Herald?
    }

    /// Whether a payload that is a JSON object asks for a drill, well-formed or not.
    ///
    /// It runs for every notification, so it parses only payloads with the key `herald` somewhere.
    static func isIn(_ payload: [UInt8]) -> Bool {
        guard payload.withUnsafeBytes(hasKey) else { return false }
        return (try? JSONDecoder().decode(Payload.self, from: Data(payload)))?.herald?.hasDrill ?? false
    }

    private static let key = Array("\"herald\"".utf8)

    private static func hasKey(_ bytes: UnsafeRawBufferPointer) -> Bool {
        guard let start = bytes.baseAddress else { return false }
        var position = 1
        while position + key.count - 1 <= bytes.count,
            let next = memchr(start + position, Int32(key[1]), bytes.count - position)
        {
            let found = UnsafeRawPointer(next) - start
            if found + key.count - 1 <= bytes.count, memcmp(start + found - 1, key, key.count) == 0 { return true }
            position = found + 1
        }
        return false
    }
}
