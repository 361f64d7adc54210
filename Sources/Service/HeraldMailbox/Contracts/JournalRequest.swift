package import HeraldModel

/// Facts of a provider's request, as far as they were known when it was accepted or refused.
package struct JournalRequest: Hashable, Sendable {
    /// The provider's credential.
    package let sender: SenderNumber
    package let pushType: PushType?
    package let priority: Priority?
    /// The length of the payload as it came; for a body that was too long, of all of it.
    package let payloadBytes: UInt32

    package init(
        sender: SenderNumber = .unknown,
        pushType: PushType? = nil,
        priority: Priority? = nil,
        payloadBytes: Int = 0
    ) {
        self.sender = sender
        self.pushType = pushType
        self.priority = priority
        self.payloadBytes = UInt32(clamping: payloadBytes)
    }

    package init(_ notification: Notification) {
        self.init(
            sender: notification.sender,
            pushType: notification.pushType,
            priority: notification.priority,
            payloadBytes: notification.payload.count
        )
    }
}

/// The refusal of a provider's request.
package struct JournalRefusal: Hashable, Sendable {
    /// The longest ``explanation``, in bytes.
    package static let longestExplanation = 300
    /// The longest ``topic``, in bytes.
    package static let longestTopic = 256
    /// The app of a request for a topic of which there is no app, or without a topic; no app has this number.
    package static let noApp = AppNumber(0)

    package let reason: RefusalReason
    /// The words that a provider gets with `herald-explain`, perhaps cut.
    package let explanation: String
    /// The topic, where no app has it; nil where the line has the app, or the request had no valid topic.
    package let topic: String?
    package let environment: PushEnvironment

    package init(reason: RefusalReason, explanation: String, topic: String?, environment: PushEnvironment) {
        self.reason = reason
        self.explanation = explanation.cut(toBytes: JournalRefusal.longestExplanation)
        self.topic = topic?.cut(toBytes: JournalRefusal.longestTopic)
        self.environment = environment
    }
}

extension String {
    /// The longest beginning of at most `count` bytes, in whole characters of Unicode.
    package func cut(toBytes count: Int) -> String {
        guard utf8.count > count else { return self }
        var end = utf8.index(startIndex, offsetBy: count)
        while String.Index(end, within: unicodeScalars) == nil { end = utf8.index(before: end) }
        return String(self[..<end])
    }
}
