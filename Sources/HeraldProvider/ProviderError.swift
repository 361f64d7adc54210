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

        /// Nothing was sent, since the certificate or key cannot be used.
        public static let badCredential = Code(kind: .badCredential)
        /// Nothing was sent, since the authority's certificate cannot be read.
        public static let badAuthority = Code(kind: .badAuthority)
        /// Nothing was sent, since a header or the address cannot be written as given.
        public static let badRequest = Code(kind: .badRequest)
        /// The service cannot be reached, or the connection ended; the notification may have been accepted.
        public static let unreachable = Code(kind: .unreachable)
        /// Nothing was sent, since the TLS handshake failed: the server's certificate is not trusted, or ours is not.
        public static let untrusted = Code(kind: .untrusted)
        /// No answer came in time; the notification may have been accepted.
        public static let timedOut = Code(kind: .timedOut)
        /// The answer is not one of a push service.
        public static let badAnswer = Code(kind: .badAnswer)
    }

    /// What kind of failure it is; equality of errors is equality of codes.
    public let code: Code
    /// What is wrong, in one line for people, without token, key or payload.
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
