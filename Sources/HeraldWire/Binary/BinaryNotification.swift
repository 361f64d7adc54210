package import HeraldModel

/// One notification as the binary provider interface carries it, from port 2195 of APNs' time before HTTP/2 ("Binary
/// Provider API" and "Legacy Information" in the Local and Remote Notification Programming Guide).
package struct BinaryNotification: Hashable, Sendable {
    /// The three forms, by the first byte of each.
    package enum Form: UInt8, Hashable, Sendable, CaseIterable {
        /// Token and payload; has no identifier, so an error closes the connection without a word.
        case simple = 0
        /// With identifier and expiration.
        case enhanced = 1
        /// A frame of items, in any order.
        case framed = 2
    }

    package var form: Form
    /// The provider's own; returned in an error response and otherwise without meaning.
    ///
    /// Never in the simple form, always in the enhanced one.
    package var identifier: UInt32?
    /// UNIX seconds until which it may wait; 0 for one attempt.
    ///
    /// Never in the simple form, always in the enhanced one.
    package var expiration: UInt32?
    /// 10 or 5; in the framed form only.
    package var priority: Priority?
    package var token: DeviceToken
    package var payload: [UInt8]

    package init(
        form: Form = .framed,
        identifier: UInt32? = nil,
        expiration: UInt32? = nil,
        priority: Priority? = nil,
        token: DeviceToken,
        payload: [UInt8]
    ) {
        self.form = form
        self.identifier = identifier
        self.expiration = expiration
        self.priority = priority
        self.token = token
        self.payload = payload
    }
}

/// Bytes that are no notification that can be taken, and what its sender is told.
package struct BinaryFault: Error, Hashable, Sendable {
    package let status: BinaryStatus
    /// The notification's; nil if it had none, or none that could be read.
    package let identifier: UInt32?
    /// Whether an error response is sent at all: the simple form knows none.
    package let isAnswered: Bool

    package init(_ status: BinaryStatus, identifier: UInt32?, isAnswered: Bool = true) {
        self.status = status
        self.identifier = identifier
        self.isAnswered = isAnswered
    }
}

/// What the bytes of a connection come to.
package enum BinaryFrame: Hashable, Sendable {
    case notification(BinaryNotification)
    /// After it nothing of the connection means anything.
    case fault(BinaryFault)
}

/// The numbers of the items in a frame.
enum BinaryItem {
    static let token: UInt8 = 1
    static let payload: UInt8 = 2
    static let identifier: UInt8 = 3
    static let expiration: UInt8 = 4
    static let priority: UInt8 = 5
}
