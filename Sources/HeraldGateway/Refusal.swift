package import HeraldModel

/// A refusal, with the words for a provider that asks for them (`herald-explain: 1`).
package struct Refusal: Error, Hashable, Sendable {
    package let rejection: Rejection
    /// What is wrong and what to do, in one sentence that holds nothing of a payload, token or key.
    package let why: String
    /// When the device token died; only with ``HeraldModel/Rejection/unregistered``.
    package let since: WallTime?

    static let unreadable = Refusal(
        .badPayload,
        "the payload is not a JSON object in UTF-8; `herald check` shows the place"
    )

    package init(_ rejection: Rejection, _ why: String, since: WallTime? = nil) {
        self.rejection = rejection
        self.why = why
        self.since = since
    }
}
