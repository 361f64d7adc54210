import Foundation

/// What a device publishes to `apps/<topic>/settings`: `{"enabled":false}` when its user switched notifications off.
struct SettingsMessage: Hashable, Sendable, Decodable {
    let enabled: Bool

    /// Reads the JSON; members that nobody knows are ignored.
    init?(json: [UInt8]) {
        guard let message: SettingsMessage = DeviceMessage.read(json) else { return nil }
        self = message
    }
}

/// What a device publishes to `device/power`: `{"saving":true}` while it saves power.
struct PowerMessage: Hashable, Sendable, Decodable {
    let saving: Bool

    /// Reads the JSON; members that nobody knows are ignored.
    init?(json: [UInt8]) {
        guard let message: PowerMessage = DeviceMessage.read(json) else { return nil }
        self = message
    }
}

private enum DeviceMessage {
    /// Reads one JSON object; nil if it is none, or has a member twice, which two readers could take for two things.
    static func read<Message: Decodable>(_ json: [UInt8]) -> Message? {
        guard let message = try? JSONDecoder().decode(Message.self, from: Data(json)) else { return nil }
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
