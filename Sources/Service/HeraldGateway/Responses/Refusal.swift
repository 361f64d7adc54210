package import HeraldMailbox
package import HeraldModel

/// A refusal, with an explanation for providers that ask for one (`herald-explain: 1`).
package struct Refusal: Error, Hashable, Sendable {
    package let refusalReason: RefusalReason
    /// One sentence with the problem and what to do; never text of a payload, token or key.
    package let why: String
    /// When the device token became invalid; only with ``HeraldModel/RefusalReason/unregistered``.
    package let since: WallTime?
    /// The part of the cluster's state in which another node may just have made what is missing here; nil if the refusal is
    /// true whatever other nodes have done.
    ///
    /// Such a refusal is confirmed before it is said (``RequestHandler``, ``BinaryConnection``).
    package let restsOn: SharedPart?

    static let unreadable = Refusal(
        .badPayload,
        "the payload is not a JSON object in UTF-8; `herald check` shows the error and its position"
    )

    static let outOfBodyMemory = Refusal(
        .serviceUnavailable,
        "the service holds too many unfinished requests; finish each request before you begin the next"
    )

    /// Notifications come faster than the store takes them.
    static let overload = Refusal(
        .serviceUnavailable,
        "notifications come faster than Herald can store them; wait as long as retry-after says, and send more slowly"
    )

    /// The store failed after it had accepted the notification, or the trust store did not record the topic's owner.
    static let storeTrouble = "Herald could not store the notification or the owner of its topic; send it again later"

    /// A refusal in the words of the table of refusal reasons, unless `why` says more.
    package init(
        _ refusalReason: RefusalReason,
        _ why: String? = nil,
        since: WallTime? = nil,
        restsOn part: SharedPart? = nil
    ) {
        self.refusalReason = refusalReason
        self.why = why ?? refusalReason.explanation
        self.since = since
        restsOn = part
    }

    /// The refusal of a frame of the binary interface that cannot be read.
    init(fault status: BinaryStatus) {
        let reason = status.refusalReason
        let why = "the frame is malformed (status \(status.rawValue) of the binary interface)"
        self.init(reason ?? .badRequestParams, reason == nil ? why : nil)
    }

    /// The channel service's refusal of a request.
    init(channels refusalReason: RefusalReason) {
        let isFlood = refusalReason == .tooManyRequests
        self.init(
            refusalReason,
            isFlood ? "broadcasts arrive faster than Herald can deliver them; send fewer, or later" : nil
        )
    }
}
