package import HeraldModel

/// The topics to which a provider key may send.
package enum TopicScope: Hashable, Sendable {
    /// Every topic that no other team owns.
    case wholeTeam
    /// Every topic of every team, and a use claims none: the console's own key.
    case everyTopic
    /// These topics only, with all their forms (``TopicScope/forms(of:)``).
    case topics(Set<Topic>)

    /// The scope of a list of topics; an empty list means the whole team.
    package init(named topics: some Sequence<Topic>) {
        let all = topics.reduce(into: Set<Topic>()) { $0.formUnion(TopicScope.forms(of: $1)) }
        self = all.isEmpty ? .wholeTeam : .topics(all)
    }

    /// A topic, and the same with the suffix of each push type: a key for an app covers every push type.
    ///
    /// The forms are computed once, when keys are read, so that a request costs one look-up.
    static func forms(of topic: Topic) -> Set<Topic> {
        guard !suffixes.contains(where: topic.name.hasSuffix) else { return [topic] }
        return Set(suffixes.compactMap { Topic(topic.name + $0) }).union([topic])
    }

    /// A topic without the suffix of a push type: the app that a team owns.
    package static func bundle(of topic: Topic) -> Topic {
        guard let suffix = suffixes.first(where: topic.name.hasSuffix) else { return topic }
        return Topic(topic.name.dropLast(suffix.count)) ?? topic
    }

    private static let suffixes = Set(PushType.allCases.map(\.topicSuffix)).subtracting([""])
}
