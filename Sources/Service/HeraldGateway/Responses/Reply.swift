import HeraldJSON
import HeraldModel

/// The HTTP status of an answer, from 100 to 999.
struct ReplyStatus: Hashable {
    let rawValue: Int

    static var ok: Self { Self(rawValue: 200) }
    static var created: Self { Self(rawValue: 201) }
    static var noContent: Self { Self(rawValue: 204) }
}

extension ReplyStatus {
    init(_ refusalReason: RefusalReason) {
        rawValue = refusalReason.httpStatus
    }
}

/// The answer to a request; its identifiers are in the ``PendingRequest``.
struct Reply {
    var status: ReplyStatus
    /// JSON of less than 1,024 bytes (a Swift client reads no more of an error); empty for none.
    var body: [UInt8] = []
    /// `apns-channel-id` of a new channel, in base64; empty for none.
    var channelID: [UInt8] = []
    /// `retry-after` in seconds, as digits; empty for none.
    var retryAfter: [UInt8] = []
    /// `herald-explanation`; empty for none.
    var explanation: [UInt8] = []

    /// The reply to an accepted notification.
    static let accepted = Reply(status: .ok)

    /// Passes the bytes of `retry-after`, `herald-explanation` and `apns-channel-id` without copying them.
    func withFieldValues<Result>(
        _ read: (UnsafeRawBufferPointer, UnsafeRawBufferPointer, UnsafeRawBufferPointer) -> Result
    ) -> Result {
        retryAfter.withUnsafeBytes { seconds in
            explanation.withUnsafeBytes { words in channelID.withUnsafeBytes { read(seconds, words, $0) } }
        }
    }
}

extension Reply {
    /// A refusal in APNs' form: compact JSON, `reason` first, then `timestamp`; with an explanation if `explains`.
    init(_ refusal: Refusal, explains: Bool) {
        let refusalReason = refusal.refusalReason
        self.init(status: ReplyStatus(refusalReason), retryAfter: Self.delays[refusalReason] ?? [])
        guard refusal.since != nil || explains else {
            body = Self.bodies[refusalReason] ?? Self.body(refusalReason)
            return
        }
        body = Self.body(refusalReason, since: refusal.since, explanation: explains ? refusal.why : nil)
    }

    /// The bodies without timestamp and explanation, made once.
    private static let bodies = Dictionary(uniqueKeysWithValues: RefusalReason.allCases.map { ($0, body($0)) })

    /// The JSON of a refusal, for an answer or a GOAWAY.
    static func body(_ refusalReason: RefusalReason, since: WallTime? = nil, explanation: String? = nil) -> [UInt8] {
        body(reason: refusalReason.reason, since: since, explanation: explanation)
    }

    /// The JSON of a refusal with any reason.
    static func body(reason: String, since: WallTime? = nil, explanation: String? = nil) -> [UInt8] {
        var json = "{\"reason\":\(JSON.string(reason))"
        // Milliseconds, as a bare integer: several clients read an integer of 64 bits.
        if let since { json += ",\"timestamp\":\(since.milliseconds)" }
        if let explanation { json += ",\"explanation\":\(JSON.string(cut(explanation)))" }
        return Array((json + "}").utf8)
    }

    /// Cuts a text to 600 bytes: some clients read only 1,024 bytes of the body.
    private static func cut(_ text: String) -> String {
        let end = text.utf8.index(text.startIndex, offsetBy: 600, limitedBy: text.endIndex) ?? text.endIndex
        return String(text.unicodeScalars[..<end])
    }

    /// The values of `retry-after`, made once.
    private static let delays = Dictionary(
        uniqueKeysWithValues: RefusalReason.allCases.compactMap { refusalReason in
            refusalReason.retryAfter.map { (refusalReason, Array("\($0)".utf8)) }
        }
    )
}
