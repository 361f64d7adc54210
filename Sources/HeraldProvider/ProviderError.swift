public import HeraldModel

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
            case overloaded
            case shutDown
        }

        private let kind: Kind

        /// Nothing was sent, since the certificate or key cannot be used, or the service does not take it.
        public static let badCredential = Code(kind: .badCredential)
        /// Nothing was sent, since the authority's certificate cannot be read.
        public static let badAuthority = Code(kind: .badAuthority)
        /// Nothing was sent, since the request cannot be written as given: a payload that is too long, say.
        public static let badRequest = Code(kind: .badRequest)
        /// The service cannot be reached, or the connection ended.
        public static let unreachable = Code(kind: .unreachable)
        /// Nothing was sent, since the TLS handshake failed: the server's certificate is not trusted, or ours is not.
        public static let untrusted = Code(kind: .untrusted)
        /// No answer came in time.
        public static let timedOut = Code(kind: .timedOut)
        /// The answer is not one of a push service.
        public static let badAnswer = Code(kind: .badAnswer)
        /// Nothing was sent, since too many sends wait already (``ProviderConfiguration/maximumWaiting``).
        public static let overloaded = Code(kind: .overloaded)
        /// The client was shut down.
        public static let shutDown = Code(kind: .shutDown)
    }

    /// What kind of failure it is; equality of errors is equality of codes.
    public let code: Code
    /// What is wrong, in one line for people, without token, key or payload.
    public let message: String
    /// Whether the service may have the notification although no answer came; if not, it certainly has not.
    ///
    /// It may where the whole request was written and the answer was lost, in this attempt or in one before it: sent
    /// again, its device may get it twice.
    public internal(set) var mayHaveArrived = false
    /// The `apns-id` that the request had, by which the service's records can be searched.
    public internal(set) var id: NotificationID?

    init(_ code: Code, _ message: String, mayHaveArrived: Bool = false) {
        self.code = code
        self.message = message
        self.mayHaveArrived = mayHaveArrived
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
