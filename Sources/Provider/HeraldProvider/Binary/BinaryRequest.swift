public import HeraldModel
import HeraldWire

/// A notification for a service of the binary interface.
///
/// The certificate selects the topic. The interface has no push type (the service treats a payload that only wakes the
/// app as background), no collapse identifier and no `apns-id`.
public struct BinaryRequest: Hashable, Sendable {
    /// The device token of the app, of any length.
    public var token: PushToken
    /// JSON payload, sent byte for byte: 1 byte to ``BinaryClientConfiguration/maximumPayloadBytes``.
    public var payload: [UInt8]
    /// How long the service may store it, in whole seconds since 1970, at most 2106-02-07 (32 bits).
    public var expiration: Expiration = .unspecified
    /// ``Priority/immediate`` or ``Priority/conserving``; nil omits it, which means ``Priority/immediate``.
    public var priority: Priority?
    /// Identifier, which a service may record; nil lets the client choose.
    ///
    /// A second notification with an identifier in use waits until the first is confirmed. Avoid 0: a service answers with 0
    /// if it could not read an identifier.
    public var identifier: UInt32?

    /// Makes a request with the required fields.
    public init(token: PushToken, payload: [UInt8]) {
        self.token = token
        self.payload = payload
    }

    /// Encodes the request, whose payload has at most `limit` bytes; the identifier is nil if the sender chose none.
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
    /// The value of the item; nil omits it.
    var binarySeconds: UInt32? {
        switch self {
        case .unspecified: nil
        case .once: 0
        case .at(let moment): UInt32(clamping: moment.seconds)
        }
    }
}
