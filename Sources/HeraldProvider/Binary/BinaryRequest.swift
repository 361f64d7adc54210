public import HeraldModel
import HeraldWire

/// One notification on its way to a service of the binary interface: all that the interface can carry.
///
/// The topic is the certificate's. There is no push type (the service takes a payload that only wakes its app for a
/// background notification), no collapse identifier and no `apns-id`.
public struct BinaryRequest: Hashable, Sendable {
    /// The device token that the app gave its provider.
    public var token: DeviceToken
    /// JSON, sent byte for byte.
    public var payload: [UInt8]
    /// How long it may wait, in whole seconds; a moment after 2106-02-07 becomes that one, the last that there is.
    public var expiration: Expiration
    /// ``Priority/immediate`` or ``Priority/conserving``; nil leaves it out, which means ``Priority/immediate``.
    public var priority: Priority?
    /// The provider's number for it, by which a service may record it; nil lets the client choose.
    ///
    /// Of two with the same number, one is written once the other is settled. A service that could not read a number
    /// answers with 0, so that 0 is better not used.
    public var identifier: UInt32?

    /// Makes a request with nothing but what is needed.
    public init(token: DeviceToken, payload: [UInt8]) {
        self.token = token
        self.payload = payload
        expiration = .unspecified
        priority = nil
        identifier = nil
    }

    /// The notification as it is written.
    /// - Parameter limit: The longest payload, in bytes.
    /// - Returns: The notification; without an identifier if none was given.
    /// - Throws: ``ProviderError/Code/badRequest``.
    func notification(limit: Int) throws -> BinaryNotification {
        try ProviderClient.check(payload, limit: limit)
        guard priority != .low else {
            throw ProviderError(.badRequest, "the binary interface has no priority 1: use 5 or 10")
        }
        return BinaryNotification(
            identifier: identifier,
            expiration: expiration.binarySeconds,
            priority: priority,
            token: token,
            payload: payload
        )
    }
}

extension Expiration {
    /// The value of the item; nil leaves it out.
    var binarySeconds: UInt32? {
        switch self {
        case .unspecified: nil
        case .once: 0
        case .at(let moment): UInt32(clamping: moment.seconds)
        }
    }
}
