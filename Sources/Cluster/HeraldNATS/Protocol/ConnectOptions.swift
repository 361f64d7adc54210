import Foundation

/// Content of CONNECT, in the words of the protocol.
struct ConnectOptions: Encodable, Hashable {
    var verbose = false
    var pedantic = false
    var tlsRequired = false
    var name = ""
    var lang = "swift"
    var version = "1"
    /// 1: the client understands INFO at any time.
    var `protocol` = 1
    var headers = true
    var noResponders = true
    var user: String?
    var pass: String?
    var authToken: String?
    var nkey: String?
    var sig: String?
    var jwt: String?

    /// - Throws: ``NATSError/Kind/authorization`` if the credential needs a nonce, and the server sent none.
    init(name: String, credential: NATSCredential, nonce: String?, usesTLS: Bool) throws(NATSError) {
        self.name = name
        tlsRequired = usesTLS
        switch credential {
        case .none: break
        case .password(let user, let password):
            self.user = user
            pass = password
        case .token(let token): authToken = token
        case .nkey(let key):
            nkey = key.publicKey
            sig = try Self.signature(of: nonce, key)
        case .jwt(let jwt, let key):
            self.jwt = jwt
            sig = try Self.signature(of: nonce, key)
        }
    }

    private static func signature(of nonce: String?, _ key: NKey) throws(NATSError) -> String {
        guard let nonce else {
            throw NATSError(.authorization, "the server asks for no signature, and there is only an nkey to present")
        }
        return try key.signature(of: nonce)
    }

    func json() throws(NATSError) -> [UInt8] {
        do {
            return Array(try ProtocolJSON.encode(self))
        } catch {
            throw NATSError(.badSetting, "the name or credential cannot be written as JSON: \(error)")
        }
    }
}
