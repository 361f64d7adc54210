import HeraldModel

/// The environment that a client selects by the host name it uses.
///
/// The server name of the TLS handshake decides; without one the request's `:authority`; else the listener's default. It
/// caches the last name, because a client uses only one.
struct ConnectionEnvironment {
    private let listener: PushEnvironment
    private let fromHandshake: PushEnvironment?
    private var lastName: [UInt8] = []
    private var lastEnvironment: PushEnvironment

    /// - Parameters:
    ///   - serverName: The server name of the TLS handshake (RFC 6066 §3); nil if the client sent none.
    ///   - listener: The default for names that imply no environment.
    init(serverName: String?, listener: PushEnvironment) {
        self.listener = listener
        fromHandshake = serverName.map { PushEnvironment.named(by: $0) ?? listener }
        lastEnvironment = listener
    }

    /// The environment of the whole connection; nil if each request selects its own.
    var ofConnection: PushEnvironment? { fromHandshake }

    mutating func environment(of fields: RequestFields) -> PushEnvironment {
        if let fromHandshake { return fromHandshake }
        let field: RequestField = fields.has(.authority) ? .authority : .host
        return fields.withValue(of: field) { name in
            if name.hasBytes(lastName) { return lastEnvironment }
            lastName = Array(name)
            lastEnvironment = PushEnvironment.named(by: String(decoding: name, as: UTF8.self)) ?? listener
            return lastEnvironment
        } ?? listener
    }
}
