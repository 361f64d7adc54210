import Foundation

/// The JSON messages of devices; unknown members are ignored.
enum DeviceMessage {
    private struct Settings: Decodable {
        let enabled: Bool
    }

    private struct Power: Decodable {
        let saving: Bool
    }

    /// Reads `apps/<topic>/settings`: `{"enabled":false}` when the user switched notifications off.
    static func isEnabled(_ json: [UInt8]) -> Bool? {
        read(Settings.self, json)?.enabled
    }

    /// Reads `device/power`: `{"saving":true}` while the device saves power.
    static func isSavingPower(_ json: [UInt8]) -> Bool? {
        read(Power.self, json)?.saving
    }

    /// Reads one JSON object; nil if it is none, or has a member twice, which readers could understand differently.
    private static func read<Message: Decodable>(_ type: Message.Type, _ json: [UInt8]) -> Message? {
        guard let message = try? JSONDecoder().decode(type, from: Data(json)) else { return nil }
        let names = memberNames(json)
        return Set(names).count == names.count ? message : nil
    }

    /// The names in the outermost object of a text that is known to be JSON.
    private static func memberNames(_ json: [UInt8]) -> [String] {
        var names: [String] = []
        var depth = 0
        var index = 0
        while index < json.count {
            switch json[index] {
            case UInt8(ascii: "{"), UInt8(ascii: "["): depth += 1
            case UInt8(ascii: "}"), UInt8(ascii: "]"): depth -= 1
            case UInt8(ascii: "\""):
                let start = index
                index += 1
                while index < json.count, json[index] != UInt8(ascii: "\"") {
                    index += json[index] == UInt8(ascii: "\\") ? 2 : 1
                }
                guard depth == 1, index < json.count, isName(json[(index + 1)...]) else { break }
                // Decoded, because a name can be spelled in several ways.
                names.append((try? JSONDecoder().decode(String.self, from: Data(json[start...index]))) ?? "")
            default: break
            }
            index += 1
        }
        return names
    }

    /// Whether a string is a name: a colon follows.
    private static func isName(_ rest: ArraySlice<UInt8>) -> Bool {
        let next = rest.first { byte in byte != 0x20 && byte != 0x09 && byte != 0x0A && byte != 0x0D }
        return next == UInt8(ascii: ":")
    }
}
