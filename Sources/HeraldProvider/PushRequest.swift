public import HeraldModel

/// One notification on its way to the service.
public struct PushRequest: Sendable {
    /// The device token that the app gave its provider.
    public var token: DeviceToken
    /// The topic (`apns-topic`); nil with a certificate that has only one.
    public var topic: Topic?
    /// JSON, sent byte for byte.
    public var payload: [UInt8]
    /// The kind of notification (`apns-push-type`).
    public var pushType: PushType
    /// The urgency (`apns-priority`); nil leaves the header out, which means ``Priority/immediate``.
    public var priority: Priority?
    /// How long it may wait (`apns-expiration`).
    public var expiration: Expiration
    /// 1 to 64 bytes; the device shows the newest of those that share it (`apns-collapse-id`).
    public var collapseID: String?
    /// The provider's identifier for it (`apns-id`); nil lets the service make one.
    public var id: NotificationID?

    /// Makes a request with nothing but what is needed.
    public init(token: DeviceToken, topic: Topic?, payload: [UInt8], pushType: PushType = .alert) {
        self.token = token
        self.topic = topic
        self.payload = payload
        self.pushType = pushType
        priority = nil
        expiration = .unspecified
        collapseID = nil
        id = nil
    }

    /// The request's header fields but `authorization`, in a fixed order.
    var fields: [(String, String)] {
        var fields = [("apns-push-type", pushType.rawValue)]
        if let topic { fields.append(("apns-topic", topic.name)) }
        if let id { fields.append(("apns-id", id.description)) }
        if let priority { fields.append(("apns-priority", String(priority.rawValue))) }
        switch expiration {
        case .unspecified: break
        case .once: fields.append(("apns-expiration", "0"))
        case .at(let moment): fields.append(("apns-expiration", String(moment.seconds)))
        }
        if let collapseID { fields.append(("apns-collapse-id", collapseID)) }
        return fields
    }
}
