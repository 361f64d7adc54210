import HeraldJSON
package import HeraldModel

/// A search in the journal, as JSON.
package struct JournalSearchRequest: Codable, Hashable, Sendable {
    package static let limits = 1...1000
    package static let defaultLimit = 100

    /// The search (``JournalSearchText``).
    package let q: String?
    /// Times like those of `after:` and `before:`.
    package let after: String?
    package let before: String?
    package let limit: Int?
    /// The answer's cursor, to go on to older lines.
    package let cursor: String?

    package init(q: String?, limit: Int, cursor: String?) {
        self.q = q
        after = nil
        before = nil
        self.limit = limit
        self.cursor = cursor
    }

    /// The search with the times of their own fields.
    package var text: String {
        [q, after.map { "after:\"\($0)\"" }, before.map { "before:\"\($0)\"" }].compactMap(\.self)
            .joined(separator: " ")
    }
}

/// Lines that a search found, newest first.
package struct JournalSearchAnswer: Codable, SnakeCased, Hashable, Sendable {
    package let items: [JournalEntry]
    /// The place of the next page; nil if there are no more lines.
    package let cursor: String?
    /// Whether everything was searched.
    package let complete: Bool
    /// The earliest time that the search has come to.
    package let searchedBackTo: String?
    package let tookMS: Int
    /// Nodes whose lines are missing, since they did not answer.
    package let missingNodes: [String]

    package init(
        items: [JournalEntry],
        cursor: String?,
        complete: Bool,
        searchedBackTo: String?,
        tookMS: Int,
        missingNodes: [String]
    ) {
        self.items = items
        self.cursor = cursor
        self.complete = complete
        self.searchedBackTo = searchedBackTo
        self.tookMS = tookMS
        self.missingNodes = missingNodes
    }

    /// Writes absent values as null.
    package func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encode(items, forKey: .items)
        try container.encode(cursor, forKey: .cursor)
        try container.encode(complete, forKey: .complete)
        try container.encode(searchedBackTo, forKey: .searchedBackTo)
        try container.encode(tookMS, forKey: .tookMS)
        try container.encode(missingNodes, forKey: .missingNodes)
    }
}

/// The life of one notification.
package struct JournalLife: Codable, SnakeCased, Hashable, Sendable {
    /// A line in plain words.
    package struct Words: Codable, Hashable, Sendable {
        package let time: String
        /// The event.
        package let words: String
        /// Its cause or consequence, and what to do; empty where there is nothing to say.
        package let hint: String
    }

    /// The state that a wait ends with.
    package enum Goal: String, Sendable, CaseIterable {
        /// Nothing more happens to it.
        case final
        case delivered
    }

    package let id: String
    /// Oldest first.
    package let lines: [JournalEntry]
    /// Whether nothing more happens to it.
    package let final: Bool
    /// The state of the newest line, in words.
    package let state: String
    package let words: [Words]
    package let missingNodes: [String]

    /// The answer has at least one line.
    package init(_ id: NotificationID, _ answer: JournalAnswer) {
        self.id = id.description
        lines = answer.lines
        final = JournalLife.has(.final, answer.lines)
        state = answer.lines.last?.state ?? ""
        words = answer.lines.map { Words($0) }
        missingNodes = answer.missingNodes
    }

    /// Whether a goal is reached.
    package func has(_ goal: Goal) -> Bool { JournalLife.has(goal, lines) }

    /// Whether the lines of a notification, oldest first, have reached a goal.
    package static func has(_ goal: Goal, _ lines: [JournalEntry]) -> Bool {
        switch goal {
        case .final: lines.last { !($0.journalState?.isRemark ?? false) }?.journalState?.isFinal ?? false
        case .delivered: lines.contains { $0.journalState?.isDelivery ?? false }
        }
    }
}
