import HeraldModel

/// The push type that a topic's suffix implies.
enum TopicKind {
    /// Suffixes by length, so that a suffix comes before its own suffixes.
    private static let endings: [(String, PushType)] =
        PushType.allCases
        .filter { !$0.topicSuffix.isEmpty }
        .map { ($0.topicSuffix, $0) }
        .sorted { $0.0.utf8.count > $1.0.utf8.count }

    /// The push type of a topic, for requests without `apns-push-type`.
    ///
    /// Clients older than that field send alerts, and calls to topics with the suffix `.voip`.
    static func kind(of topic: Topic) -> PushType {
        for (ending, type) in endings where topic.name.hasSuffix(ending) { return type }
        return .alert
    }
}
