package import HeraldModel

/// A subject of the log, or a filter of subjects.
///
/// Its parts are separated by dots. In a filter `*` stands for one part, and `>` for all that follow.
package struct LogSubject: Hashable, Sendable, CustomStringConvertible {
    package let text: String

    package init(_ text: String) {
        self.text = text
    }

    package var description: String { text }

    // MARK: - Mailbox

    /// The claim of the node that holds a device's connection.
    package static func claim(_ device: DeviceNumber, _ partition: Partition) -> LogSubject {
        LogSubject("hrld.box.\(partition.index).\(SubjectText.of(device)).c")
    }

    package static func claims(_ partition: Partition) -> LogSubject {
        LogSubject("hrld.box.\(partition.index).*.c")
    }

    /// The notification of a slot.
    ///
    /// The registration's generation is a part of it: a notification for an app that was removed can neither displace one
    /// for its successor, nor be read.
    package static func slot(_ slot: Slot, generation: UInt32, _ partition: Partition) -> LogSubject {
        var text: [UInt8] = []
        text.reserveCapacity(48)
        text += "hrld.box.".utf8
        SubjectText.append(UInt64(partition.index), radix: 10, to: &text)
        text += ".".utf8
        SubjectText.append(slot.device, to: &text)
        text += ".n.".utf8
        SubjectText.append(UInt64(slot.app.value), radix: 36, to: &text)
        text += ".".utf8
        SubjectText.append(UInt64(generation), radix: 36, to: &text)
        return LogSubject(String(decoding: text, as: UTF8.self))
    }

    /// The slot and generation of a notification's subject; nil for every other subject.
    package var slot: (slot: Slot, generation: UInt32)? {
        let parts = text.split(separator: ".", omittingEmptySubsequences: false)
        guard parts.count == 7, parts[1] == "box", parts[4] == "n", let device = SubjectText.device(parts[3]),
            let app = UInt32(parts[5], radix: 36), let generation = UInt32(parts[6], radix: 36)
        else { return nil }
        return (Slot(device: device, app: AppNumber(app)), generation)
    }

    /// The device of a claim's subject; nil for every other subject.
    package var claimedDevice: DeviceNumber? {
        let parts = text.split(separator: ".", omittingEmptySubsequences: false)
        guard parts.count == 5, parts[1] == "box", parts[4] == "c" else { return nil }
        return SubjectText.device(parts[3])
    }

    // MARK: - Registry

    package static func app(_ app: App) -> LogSubject {
        LogSubject("hrld.app.\(app.environment.rawValue).\(Base64.encode(Array(app.topic.name.utf8)))")
    }

    /// The app of an app's subject; nil for every other subject.
    package var app: App? {
        let parts = text.split(separator: ".", omittingEmptySubsequences: false)
        guard parts.count == 4, parts[1] == "app", let environment = PushEnvironment(rawValue: String(parts[2])),
            let topic = SubjectText.bytes(parts[3]).flatMap({ Topic(String(decoding: $0, as: UTF8.self)) })
        else { return nil }
        return App(topic: topic, environment: environment)
    }

    /// A device's record.
    package static func device(_ device: DeviceHash, _ partition: Partition) -> LogSubject {
        LogSubject("hrld.dev.\(partition.index).\(Base64.encode(device.bytes))")
    }

    package static func registrations(_ device: DeviceNumber, _ partition: Partition) -> LogSubject {
        LogSubject("hrld.reg.\(partition.index).\(SubjectText.of(device))")
    }

    /// The device of the subject of a device's registrations; nil for every other subject.
    package var registeredDevice: DeviceNumber? {
        let parts = text.split(separator: ".", omittingEmptySubsequences: false)
        guard parts.count == 4, parts[1] == "reg" else { return nil }
        return SubjectText.device(parts[3])
    }

    /// A record of the cluster itself; `name` is one part, or two.
    package static func meta(_ name: String) -> LogSubject { LogSubject("hrld.meta.\(name)") }

    /// A fact of the trust that all nodes share; `key` is its kind and its name, with a dot between.
    package static func trust(_ key: String) -> LogSubject { LogSubject("hrld.trust.fact.\(key)") }

    package static func channel(_ channel: ChannelID) -> LogSubject {
        LogSubject("hrld.channel.\(Base64.encode(channel.bytes))")
    }

    /// The channel of a channel's subject; nil for every other subject.
    package var channel: ChannelID? {
        let parts = text.split(separator: ".", omittingEmptySubsequences: false)
        guard parts.count == 3, parts[1] == "channel", let bytes = SubjectText.bytes(parts[2]) else {
            return nil
        }
        return ChannelID(bytes: bytes)
    }

    /// The broadcasts of a channel, of those that are stored for later subscribers, or of the others.
    ///
    /// The last stored one is the newest message for a device that subscribes, whatever came after it.
    package static func broadcasts(_ channel: ChannelID, isStored: Bool) -> LogSubject {
        LogSubject("hrld.cast.\(isStored ? "stored" : "transient").\(Base64.encode(channel.bytes))")
    }
}

/// The name of a node, as a part of a subject.
package struct NodeName: Hashable, Sendable {
    package let text: String

    /// - Returns: nil unless it is 1 to 64 bytes of `A` to `Z`, `a` to `z`, `0` to `9`, `-` and `_`.
    package init?(_ text: String) {
        let isValid = text.utf8.allSatisfy {
            $0.isASCIIAlphanumeric || $0 == UInt8(ascii: "-") || $0 == UInt8(ascii: "_")
        }
        guard (1...64).contains(text.utf8.count), isValid else { return nil }
        self.text = text
    }
}

/// Writes and reads values as a part of a subject: base64url without padding (RFC 4648 §5).
enum SubjectText {
    /// Of this module: each notification's subject reads it eleven times.
    private static let digits = Base64.urlSafe

    /// A device's number: eight bytes, most significant first, as eleven digits.
    static func of(_ device: DeviceNumber) -> String {
        var text: [UInt8] = []
        append(device, to: &text)
        return String(decoding: text, as: UTF8.self)
    }

    /// Appends a device's number, as ``of(_:)`` writes it.
    static func append(_ device: DeviceNumber, to text: inout [UInt8]) {
        for shift in stride(from: 58, to: 0, by: -6) { text.append(digits[Int(device.value >> shift & 63)]) }
        text.append(digits[Int(device.value << 2 & 63)])
    }

    /// Appends a number with the digits 0 to 9 and a to z.
    static func append(_ number: UInt64, radix: UInt64, to text: inout [UInt8]) {
        let start = text.endIndex
        var rest = number
        repeat {
            let digit = UInt8(truncatingIfNeeded: rest % radix)
            text.append(digit < 10 ? UInt8(ascii: "0") + digit : UInt8(ascii: "a") - 10 + digit)
            rest /= radix
        } while rest > 0
        text[start...].reverse()
    }

    static func device(_ text: some StringProtocol) -> DeviceNumber? {
        guard text.utf8.count == 11 else { return nil }
        var value: UInt64 = 0
        for (position, byte) in text.utf8.enumerated() {
            guard let digit = digits.firstIndex(of: byte) else { return nil }
            // The last digit holds four bits, and two that are 0.
            guard position < 10 || digit & 3 == 0 else { return nil }
            value = position < 10 ? value << 6 | UInt64(digit) : value << 4 | UInt64(digit >> 2)
        }
        return DeviceNumber(value)
    }

    /// The bytes of a text; nil unless it has the one form that ``Base64`` gives them.
    static func bytes(_ text: some StringProtocol) -> [UInt8]? {
        let bytes = Array(text.utf8).withUnsafeBytes(Base64.decode)
        return bytes.flatMap { Base64.encode($0) == text ? $0 : nil }
    }
}
