import HeraldJSON
package import HeraldMailbox
package import HeraldModel

/// Question for numbers of journal lines.
package struct TallyQuestion: Codable, Hashable, Sendable {
    /// The property by which lines count apart.
    package enum Group: String, Codable, CaseIterable, Sendable {
        case outcome
        case state
        case type
        case priority
    }

    /// The most days in one question.
    package static let mostDays: Int64 = 31
    /// The most hours in one question: 31 days touch one hour more than they have.
    package static let mostHours = mostDays * 24 + 1

    /// A topic; nil for the lines of all apps.
    package let topic: String?
    /// Nil for both.
    package let environment: PushEnvironment?
    /// Nil for all outcomes.
    package let outcome: JournalOutcome?
    package let group: Group
    /// Hours since 1970; the last one is not included.
    package let firstHour: Int64
    package let endHour: Int64

    package init(
        topic: String?,
        environment: PushEnvironment?,
        outcome: JournalOutcome?,
        group: Group,
        hours: Range<Int64>
    ) {
        self.topic = topic
        self.environment = environment
        self.outcome = outcome
        self.group = group
        firstHour = hours.lowerBound
        endHour = hours.upperBound
    }

    /// Nil if there are none, or too many.
    package var hours: Range<Int64>? {
        let (count, isTooLong) = endHour.subtractingReportingOverflow(firstHour)
        return !isTooLong && (1...TallyQuestion.mostHours).contains(count) ? firstHour..<endHour : nil
    }

    /// The name of a line's group; nil for lines that are not wanted.
    package func name(of key: TallyKey) -> String? {
        if let outcome, outcome != JournalOutcome(key.state) { return nil }
        switch group {
        case .outcome: return JournalOutcome(key.state).rawValue
        case .state: return key.state.words
        case .type: return key.traits.pushType?.rawValue ?? "unknown"
        case .priority: return key.traits.priority.map { "\($0.rawValue)" } ?? "unknown"
        }
    }
}

/// Numbers of journal lines by hour.
package struct TallyAnswer: Codable, SnakeCased, Hashable, Sendable {
    /// Numbers of one hour.
    package struct Hour: Codable, Hashable, Sendable {
        /// The beginning of the hour.
        package let time: String
        package let counts: [String: Int]
    }

    package let from: String
    package let to: String
    /// The numbers of all hours together.
    package let sums: [String: Int]
    /// Hours with lines, oldest first.
    package let hours: [Hour]
    /// The nodes of a cluster whose numbers are missing.
    package let missingNodes: [String]

    /// Adds up the numbers of nodes.
    package init(_ question: TallyQuestion, nodes: [[Int64: [String: Int]]], missingNodes: [String]) {
        var hours: [Int64: [String: Int]] = [:]
        var sums: [String: Int] = [:]
        for (hour, counts) in nodes.joined() where question.hours?.contains(hour) == true {
            hours[hour, default: [:]].merge(counts) { $0 &+ $1 }
            sums.merge(counts) { $0 &+ $1 }
        }
        from = TallyAnswer.time(question.firstHour)
        to = TallyAnswer.time(question.endHour)
        self.sums = sums
        self.hours = hours.sorted { $0.key < $1.key }.map { Hour(time: TallyAnswer.time($0), counts: $1) }
        self.missingNodes = missingNodes
    }

    private static func time(_ hour: Int64) -> String { WallTime(seconds: hour * 3600).rfc3339 }
}
