import HeraldModel

/// What a topic's ending says about the notifications that are sent to it.
enum TopicKind {
    /// The endings that mean something, each before those that it ends with.
    private static let endings: [(String, PushType)] =
        PushType.allCases
        .filter { !$0.topicSuffix.isEmpty }
        .map { ($0.topicSuffix, $0) }
        .sorted { $0.0.utf8.count > $1.0.utf8.count }

    /// The kind of notification that a topic is for, where the request does not say; most clients older than
    /// `apns-push-type` send alerts, and calls to `.voip`.
    static func kind(of topic: Topic) -> PushType {
        for (ending, type) in endings where topic.name.hasSuffix(ending) { return type }
        return .alert
    }
}
