package import HeraldModel

/// To which topics a provider key may send.
package enum TopicScope: Hashable, Sendable {
    /// Every topic that no credential of another team names.
    case wholeTeam
    /// These, and nothing else. Holds a bundle identifier in all its forms, see ``TopicScope/forms(of:)``.
    case topics(Set<Topic>)

    /// A scope of these topics; the whole team's where there is none.
    package init(named topics: some Sequence<Topic>) {
        let all = topics.reduce(into: Set<Topic>()) { $0.formUnion(TopicScope.forms(of: $1)) }
        self = all.isEmpty ? .wholeTeam : .topics(all)
    }

    /// A topic, and what it becomes with the suffix of each push type: whoever may send alerts by token to an app may
    /// send it every other kind too.
    ///
    /// They are spelled out once, when keys are read, so that a request costs one look-up.
    static func forms(of topic: Topic) -> Set<Topic> {
        guard !suffixes.contains(where: topic.name.hasSuffix) else { return [topic] }
        return Set(suffixes.compactMap { Topic(topic.name + $0) }).union([topic])
    }

    private static let suffixes = Set(PushType.allCases.map(\.topicSuffix)).subtracting([""])
}
