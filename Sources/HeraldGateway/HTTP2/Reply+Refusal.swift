import HeraldModel

extension Reply {
    /// A refusal as APNs words it: compact JSON, the reason first, and the time at which the token died; words if
    /// the provider asked for them.
    init(_ refusal: Refusal, explains: Bool) {
        let rejection = refusal.rejection
        self.init(status: ReplyStatus(rejection), retryAfter: Self.delays[rejection] ?? [])
        guard refusal.since != nil || explains else {
            body = Self.bodies[rejection] ?? Self.body(rejection, since: nil, explanation: nil)
            return
        }
        body = Self.body(rejection, since: refusal.since, explanation: explains ? refusal.why : nil)
    }

    /// The bodies without particulars, made once.
    private static let bodies = Dictionary(
        uniqueKeysWithValues: Rejection.allCases.map { ($0, body($0, since: nil, explanation: nil)) }
    )

    /// The JSON that a refusal comes to, in an answer or in a GOAWAY.
    static func body(_ rejection: Rejection, since: WallTime? = nil, explanation: String? = nil) -> [UInt8] {
        var json = "{\"reason\":\"\(rejection.reason)\""
        // Milliseconds, as a bare integer: several clients read an integer of 64 bits.
        if let since { json += ",\"timestamp\":\(since.milliseconds)" }
        if let explanation { json += ",\"explanation\":\"\(escaped(explanation))\"" }
        return Array((json + "}").utf8)
    }

    /// At most 600 characters, so that the body stays below the 1,024 bytes that some clients read.
    private static func escaped(_ text: String) -> String {
        var escaped = ""
        for scalar in text.unicodeScalars.prefix(600) where escaped.utf8.count < 600 {
            switch scalar {
            case "\"", "\\":
                escaped += "\\\(scalar)"
            case _ where scalar.value < 0x20:
                escaped += " "
            default:
                escaped.unicodeScalars.append(scalar)
            }
        }
        return escaped
    }

    /// When to try again, in seconds, where trying again is worth while.
    ///
    /// APNs documents no such field; some clients read it.
    private static let delays: [Rejection: [UInt8]] = [
        .tooManyProviderTokenUpdates: Array("1200".utf8),
        // Whatever the rate is set to, the next one is free within a second.
        .tooManyRequests: Array("1".utf8),
        .serviceUnavailable: Array("10".utf8),
        .shutdown: Array("10".utf8),
    ]
}

extension ReplyStatus {
    /// The status of a refusal.
    init(_ rejection: Rejection) {
        self = ReplyStatus(rawValue: rejection.httpStatus) ?? .internalServerError
    }
}
