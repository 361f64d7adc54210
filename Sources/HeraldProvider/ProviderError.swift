/// Why a request got no answer; a refusal is an answer (``PushAnswer/refused(_:)``).
public struct ProviderError: Error, Hashable, Sendable {
    /// What kind of failure it is.
    public struct Code: Hashable, Sendable {
        private enum Kind: Hashable, Sendable {
            case badCredential
            case badAuthority
            case badRequest
            case unreachable
            case untrusted
            case timedOut
            case badAnswer
        }

        private let kind: Kind

        /// The certificate or key cannot be used. Nothing was sent.
        public static let badCredential = Code(kind: .badCredential)
        /// The authority's certificate cannot be read. Nothing was sent.
        public static let badAuthority = Code(kind: .badAuthority)
        /// A header or the address cannot be written as given. Nothing was sent.
        public static let badRequest = Code(kind: .badRequest)
        /// The service cannot be reached, or the connection ended. The notification may have been accepted.
        public static let unreachable = Code(kind: .unreachable)
        /// The TLS handshake failed: the server's certificate is not trusted, or ours is not. Nothing was sent.
        public static let untrusted = Code(kind: .untrusted)
        /// No answer came in time. The notification may have been accepted.
        public static let timedOut = Code(kind: .timedOut)
        /// The answer is not one of a push service.
        public static let badAnswer = Code(kind: .badAnswer)
    }

    /// What kind of failure it is; equality of errors is equality of codes.
    public let code: Code
    /// What is wrong, in one line for people. Holds no token, key or payload.
    public let message: String

    init(_ code: Code, _ message: String) {
        self.code = code
        self.message = message
    }

    /// Compares codes.
    public static func == (left: ProviderError, right: ProviderError) -> Bool {
        left.code == right.code
    }

    /// Feeds the code to a hasher.
    public func hash(into hasher: inout Hasher) {
        hasher.combine(code)
    }
}

extension ProviderError: CustomStringConvertible {
    /// The message.
    public var description: String { message }
}
