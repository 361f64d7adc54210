package import HeraldModel

/// Push type and priority of a line's notification in one byte: the type's number in the lower four bits, and the priority
/// in the next two.
package struct JournalTraits: Hashable, Sendable {
    /// A line that knows neither, and has no request.
    package static let none = JournalTraits(nil)

    private static let priorities: [Priority?] = [nil, .low, .conserving, .immediate]

    package let rawValue: UInt8

    package init(pushType: PushType?, priority: Priority?) {
        let code: UInt8 =
            switch priority {
            case nil: 0
            case .low: 1
            case .conserving: 2
            case .immediate: 3
            }
        rawValue = code << 4 | (pushType?.storedCode ?? 0)
    }

    package init(_ request: JournalRequest?) {
        guard let request else {
            self.init(checked: .max)
            return
        }
        self.init(pushType: request.pushType, priority: request.priority)
    }

    /// Nil for an invalid byte.
    package init?(rawValue: UInt8) {
        self.init(checked: rawValue)
        guard rawValue != .max else { return }
        guard rawValue < 0x40, pushType != nil || rawValue & 0xF == 0 else { return nil }
    }

    private init(checked rawValue: UInt8) {
        self.rawValue = rawValue
    }

    package var pushType: PushType? { rawValue < 0x40 ? PushType(storedCode: rawValue & 0xF) : nil }

    package var priority: Priority? { rawValue < 0x40 ? JournalTraits.priorities[Int(rawValue >> 4)] : nil }
}
