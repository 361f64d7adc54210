import HeraldModel

/// Which environment a client asks for by the name that it uses for the service: that of the TLS handshake, else that of
/// the request, else the door's own.
///
/// It remembers the name that it saw last: a client uses one.
struct NamedEnvironment {
    private let door: PushEnvironment
    private let fromHandshake: PushEnvironment?
    private var lastName: [UInt8] = []
    private var lastEnvironment: PushEnvironment

    /// - Parameters:
    ///   - serverName: The name in the TLS handshake (RFC 6066 §3); nil if the client sent none.
    ///   - door: What counts for names that say nothing.
    init(serverName: String?, door: PushEnvironment) {
        self.door = door
        fromHandshake = serverName.map { PushEnvironment.named(by: $0) ?? door }
        lastEnvironment = door
    }

    /// The environment of the whole connection; nil if each request says for itself.
    var ofConnection: PushEnvironment? { fromHandshake }

    /// The environment of a request.
    mutating func environment(of fields: RequestFields) -> PushEnvironment {
        if let fromHandshake { return fromHandshake }
        let field: RequestField = fields.has(.authority) ? .authority : .host
        return fields.withValue(of: field) { name in
            if name.hasBytes(lastName) { return lastEnvironment }
            lastName = Array(name)
            lastEnvironment = PushEnvironment.named(by: String(decoding: name, as: UTF8.self)) ?? door
            return lastEnvironment
        } ?? door
    }
}
