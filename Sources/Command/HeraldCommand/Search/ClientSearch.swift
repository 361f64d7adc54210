import HeraldConsole
import HeraldModel
import HeraldService
import NIOHTTP1

extension ControlClient {
    /// The newest lines that a search finds, oldest first, from as many pages as it takes.
    /// - Throws: As ``ask(_:_:)``.
    func search(_ terms: String, limit: Int) async throws -> JournalAnswer {
        var found: [JournalEntry] = []
        var missing: Set<String> = []
        var cursor: String?
        repeat {
            let most = min(limit - found.count, JournalSearchRequest.limits.upperBound)
            let request = JournalSearchRequest(q: terms, limit: most, cursor: cursor)
            let page = try await ask(AdminAPI.searchJournal, body: request)
            found += page.items
            missing.formUnion(page.missingNodes)
            cursor = page.cursor
            // A node that does not answer keeps its place, and would be asked forever.
        } while cursor != nil && found.count < limit && missing.isEmpty
        return JournalAnswer(found.reversed(), missingNodes: missing.sorted())
    }

    /// The lines of a notification, once it has come to a goal or the time is over.
    /// - Throws: As ``ask(_:_:)``.
    func wait(for id: NotificationID, until goal: JournalLife.Goal, time: Duration) async throws -> JournalAnswer {
        let deadline = ContinuousClock.now + time
        while true {
            let left = min(20_000, max(0, (deadline - ContinuousClock.now).wholeMilliseconds))
            let life = try await find(
                AdminAPI.notificationLife,
                [Ask.notification(id), AdminAPI.lifeGoal(goal.rawValue), AdminAPI.lifeWait(Double(left) / 1000)]
            )
            let lines = life?.lines ?? []
            if JournalLife.has(goal, lines) || ContinuousClock.now >= deadline { return JournalAnswer(lines) }
        }
    }
}

/// The lines that `herald journal --follow` has printed, as far back as they can come again.
struct FollowedLines {
    /// The longest time that a line may come after later ones, of another node or a later commit.
    private static let lateness = Duration.seconds(2)

    private var newest: WallTime?
    private var printed: Set<JournalEntry> = []

    init(_ lines: [JournalEntry]) {
        _ = new(lines)
    }

    /// The term that finds the lines that may be new.
    var term: String { newest.map { "after:\"\(($0 - FollowedLines.lateness).rfc3339)\"" } ?? "after:-2s" }

    /// The lines that are not printed yet.
    mutating func new(_ lines: [JournalEntry]) -> [JournalEntry] {
        let new = lines.filter { !printed.contains($0) }
        newest = ([newest] + new.map { WallTime(rfc3339: $0.time) }).compactMap(\.self).max()
        // The times have one form, so their texts have their order.
        let oldest = newest.map { ($0 - FollowedLines.lateness).rfc3339 } ?? ""
        printed = printed.union(new).filter { $0.time >= oldest }
        return new
    }
}
