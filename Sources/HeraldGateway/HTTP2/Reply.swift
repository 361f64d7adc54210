/// The statuses that a door answers with.
enum ReplyStatus: Int {
    case ok = 200
    case created = 201
    case noContent = 204
    case badRequest = 400
    case forbidden = 403
    case notFound = 404
    case methodNotAllowed = 405
    case gone = 410
    case payloadTooLarge = 413
    case tooManyRequests = 429
    case internalServerError = 500
    case serviceUnavailable = 503

    /// The digits, which live as long as the program.
    var digits: StaticString {
        switch self {
        case .ok: "200"
        case .created: "201"
        case .noContent: "204"
        case .badRequest: "400"
        case .forbidden: "403"
        case .notFound: "404"
        case .methodNotAllowed: "405"
        case .gone: "410"
        case .payloadTooLarge: "413"
        case .tooManyRequests: "429"
        case .internalServerError: "500"
        case .serviceUnavailable: "503"
        }
    }
}

/// An answer on its way out.
///
/// What is constant is a constant; identifiers are with the ``RequestSlot``.
struct Reply {
    var status: ReplyStatus
    /// JSON, less than 1,024 bytes (a Swift client reads no more of an error); empty for none.
    var body: [UInt8] = []
    /// The channel that was made, in base64; empty for none.
    var channelID: [UInt8] = []
    /// Seconds in digits, for `retry-after`; empty for none.
    var retryAfter: [UInt8] = []
    /// Words for `herald-explanation`; empty for none.
    var explanation: [UInt8] = []

    /// Gives out the bytes of `retry-after`, of the explanation, and of the channel's identifier where they lie.
    func withWords<Result>(
        _ read: (UnsafeRawBufferPointer, UnsafeRawBufferPointer, UnsafeRawBufferPointer) -> Result
    ) -> Result {
        retryAfter.withUnsafeBytes { seconds in
            explanation.withUnsafeBytes { words in channelID.withUnsafeBytes { read(seconds, words, $0) } }
        }
    }

    /// The answer to a notification that is safe.
    static let accepted = Reply(status: .ok)
}
