package import HeraldModel

/// A notification of the binary provider interface, port 2195 of APNs before HTTP/2 ("Binary Provider API" and "Legacy
/// Information" in the Local and Remote Notification Programming Guide).
package struct BinaryNotification: Hashable, Sendable {
    /// The three forms, by the first byte of each.
    package enum Form: UInt8, Hashable, Sendable, CaseIterable {
        /// Token and payload; without identifier, so an error closes the connection without a response.
        case simple = 0
        /// With identifier and expiration.
        case enhanced = 1
        /// A frame of items, in any order.
        case framed = 2
    }

    package var form: Form
    /// The provider's identifier, only used in error responses; never in the simple form, always in the enhanced one.
    package var identifier: UInt32?
    /// Expiration in UNIX seconds, 0 for one attempt; never in the simple form, always in the enhanced one.
    package var expiration: UInt32?
    /// 10 or 5; in the framed form only.
    package var priority: Priority?
    /// The device token; one that was decoded is of Herald's length.
    package var token: PushToken
    package var payload: [UInt8]

    package init(
        form: Form = .framed,
        identifier: UInt32? = nil,
        expiration: UInt32? = nil,
        priority: Priority? = nil,
        token: PushToken,
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

/// A frame that cannot be accepted, and the error response for it.
package struct BinaryFault: Error, Hashable, Sendable {
    package let status: BinaryStatus
    /// The notification's identifier; nil if it has none that can be read.
    package let identifier: UInt32?
    /// Whether to send an error response; the simple form has none.
    package let isAnswered: Bool

    package init(_ status: BinaryStatus, identifier: UInt32?, isAnswered: Bool = true) {
        self.status = status
        self.identifier = identifier
        self.isAnswered = isAnswered
    }
}

/// The result of decoding one frame.
package enum BinaryFrame: Hashable, Sendable {
    case notification(BinaryNotification)
    /// An error after which the rest of the stream is meaningless.
    case fault(BinaryFault)
}

/// Item numbers of a frame.
enum BinaryItem {
    static let token: UInt8 = 1
    static let payload: UInt8 = 2
    static let identifier: UInt8 = 3
    static let expiration: UInt8 = 4
    static let priority: UInt8 = 5
}
