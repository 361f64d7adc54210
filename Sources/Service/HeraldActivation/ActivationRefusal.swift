import HTTPTypes
import HeraldModel
import Hummingbird
import NIOCore

/// An error answer in plain text (RFC 7030 §4.2.3).
struct ActivationRefusal: Error, Sendable {
    let status: HTTPResponse.Status
    /// One line, without anything that the client sent.
    let words: String
    var retryAfter: Duration?
    var challenge = false

    init(_ status: HTTPResponse.Status, _ words: String) {
        self.status = status
        self.words = words
    }

    /// Status 401: a code is required.
    static func unauthorized(_ words: String) -> ActivationRefusal {
        var refusal = ActivationRefusal(.unauthorized, words)
        refusal.challenge = true
        return refusal
    }

    /// Status 429, with `retry-after`.
    static func tooMany(_ words: String, after wait: Duration) -> ActivationRefusal {
        var refusal = ActivationRefusal(.tooManyRequests, words)
        refusal.retryAfter = wait
        return refusal
    }

    /// Status 503 of a failure that passes, with `retry-after`.
    static func later(_ words: String) -> ActivationRefusal {
        var refusal = ActivationRefusal(.serviceUnavailable, words)
        refusal.retryAfter = .seconds(2)
        return refusal
    }

    var response: Response {
        var fields = HTTPFields()
        fields[.contentType] = "text/plain; charset=utf-8"
        fields[.cacheControl] = "no-store"
        if challenge { fields[.wwwAuthenticate] = #"Basic realm="Herald activation""# }
        if let retryAfter {
            fields[.retryAfter] = String(max(1, (retryAfter.wholeMilliseconds + 999) / 1000))
        }
        return Response(
            status: status,
            headers: fields,
            body: ResponseBody(byteBuffer: ByteBuffer(string: words + "\n"))
        )
    }
}
