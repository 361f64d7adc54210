import ArgumentParser
import Foundation
import HeraldConsole
import HeraldMailbox
import HeraldModel
import HeraldService

/// `herald journal`: the events of notifications.
struct Journal: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Show what became of notifications.",
        discussion: """
            Prints one line for each event, oldest first: of one notification by its apns-id or apns-unique-id, or those \
            that a search finds. A search has terms with the keys topic, state, device, provider, reason, type, priority, \
            id, environment, after and before; a minus negates a term, and a word without a key is an identifier, a device \
            token, a topic or a device. Exits 1 if nothing is found, or what --wait waits for does not come. Asks the \
            running service, which in a cluster asks all nodes; if none runs, it reads the folder.

            Example:
              herald journal 2F7CA8F4-3B5C-4F4E-9F0E-6C0E4D2D2C11 --explain
              herald journal 'topic:com.example.app state:discarded' --since 2h
              herald journal --device 833dggt3rc56 --follow
            """
    )

    @Argument(help: ArgumentHelp("An apns-id or apns-unique-id, or the terms of a search.", valueName: "search"))
    var words: [String] = []

    @Option(help: ArgumentHelp("A device's identifier, as `herald device list` shows it.", valueName: "id"))
    var device: String?

    @Option(help: ArgumentHelp("A topic, in both environments.", valueName: "id"))
    var topic: String?

    @Option(help: ArgumentHelp("A state: received, delivered, stored, discarded, refused…", valueName: "state"))
    var state: String?

    @Option(help: ArgumentHelp("Lines since a time: 2h, 30m, 7d, or 2026-11-22T10:00.", valueName: "time"))
    var since: String?

    @Option(
        help: ArgumentHelp(
            "Lines at most, 1 to \(AdminAPI.journalLimits.upperBound); the newest are shown.",
            valueName: "n"
        )
    )
    var limit = AdminAPI.journalDefault

    @Flag(help: "Go on with new lines, until you stop it.")
    var follow = false

    @Flag(help: "Say what each event means, and what to do.")
    var explain = false

    @Option(help: ArgumentHelp("Wait for one notification: 10s, 2m.", valueName: "time"))
    var wait: String?

    @Option(help: ArgumentHelp("Wait until it is final (default) or delivered.", valueName: "goal"))
    var until: String?

    @OptionGroup var data: DataOptions

    func validate() throws {
        guard follow || !terms.isEmpty else {
            throw ValidationError("Name a notification by its apns-id, or --device, or --topic, or search.")
        }
        guard AdminAPI.journalLimits.contains(limit) else {
            throw ValidationError("--limit is a number from 1 to \(AdminAPI.journalLimits.upperBound).")
        }
        guard wait == nil || (notification != nil && waitTime != nil) else {
            throw ValidationError("--wait takes a time like 10s or 2m, and one apns-id.")
        }
        guard until == nil || (wait != nil && goal != nil) else {
            throw ValidationError("--until is final or delivered, and needs --wait.")
        }
        guard !follow || (wait == nil && !data.json) else {
            throw ValidationError("--follow goes neither with --wait nor with --json.")
        }
        _ = try question()
        _ = try search()
    }

    func run() async throws {
        let folder = try data.folder()
        let answer =
            switch try FolderLock.attempt(folder) {
            case .taken(let lock): try await linesWithoutService(folder, lock)
            case .held: try await lines(of: ControlClient(folder: folder))
            }
        if data.json { try Terminal.sayJSON(answer.lines) }
        for node in answer.missingNodes { Terminal.complain("herald: \(JournalText.missing(node))") }
        show(answer.lines)
        if follow { return try await follow(ControlClient(folder: folder), after: answer.lines) }
        guard !answer.lines.isEmpty else { throw CommandError(.refused, try nothingFound()) }
        if let goal, let waited = wait, !JournalLife.has(goal, answer.lines) {
            throw CommandError(.refused, "the notification is not \(goal.rawValue) after \(waited)")
        }
    }

    private func show(_ lines: [JournalEntry]) {
        guard !data.json, !lines.isEmpty else { return }
        if explain {
            JournalText.explained(lines).forEach(Terminal.say)
        } else {
            JournalText.lines(lines).forEach(Terminal.say)
            if notification != nil { JournalText.refusals(lines).forEach(Terminal.say) }
        }
    }

    private func linesWithoutService(_ folder: DataFolder, _ lock: FolderLock) async throws -> JournalAnswer {
        guard !follow, wait == nil else {
            throw CommandError(
                .unreachable,
                "no service runs on \(folder.path), and nothing new comes: leave out --follow and --wait"
            )
        }
        if let question = try question() {
            return JournalAnswer(try await JournalReader.entries(question, limit: limit, in: folder, under: lock))
        }
        let search = try search()
        return JournalAnswer(try await JournalReader.entries(search, limit: limit, in: folder, under: lock))
    }

    private func lines(of client: ControlClient) async throws -> JournalAnswer {
        if let notification, let goal, let waitTime {
            return try await client.wait(for: notification, until: goal, time: waitTime)
        }
        if let question = try question() { return try await client.journal(question, limit: limit) }
        return try await client.search(terms, limit: limit)
    }

    /// Prints new lines, until the command is stopped.
    private func follow(_ client: ControlClient, after lines: [JournalEntry]) async throws {
        var seen = FollowedLines(lines)
        while true {
            try await Task.sleep(for: .milliseconds(500))
            let most = JournalSearchRequest.limits.upperBound
            let answer = try await client.search("\(terms) \(seen.term)", limit: most)
            let new = seen.new(answer.lines)
            guard !new.isEmpty else { continue }
            (explain ? JournalText.explained(new) : Array(JournalText.lines(new).dropFirst())).forEach(Terminal.say)
        }
    }

    // MARK: - Arguments

    /// The search as it is written, with the terms of the options.
    private var terms: String {
        let options = [
            device.map { "device:\"\($0)\"" }, topic.map { "topic:\"\($0)\"" }, state.map { "state:\"\($0)\"" },
            since.map { DurationText.readWithUnit($0) == nil ? "after:\"\($0)\"" : "after:-\($0)" },
        ]
        return (words + options.compactMap(\.self)).joined(separator: " ")
    }

    /// The notification, if only one is named.
    private var notification: NotificationID? {
        guard words.count == 1, device == nil, topic == nil, state == nil, since == nil else { return nil }
        return words.first.flatMap { NotificationID($0) }
    }

    private var waitTime: Duration? { wait.flatMap { DurationText.read($0) } }

    private var goal: JournalLife.Goal? {
        guard wait != nil else { return nil }
        guard let until else { return .final }
        return JournalLife.Goal(rawValue: until)
    }

    private func search() throws -> JournalSearchText {
        do {
            return try JournalSearchText(terms, now: ServiceClock().now())
        } catch {
            throw ValidationError(LogText.escaped(error.message, limit: 500) + ".")
        }
    }

    private func nothingFound() throws -> String {
        try question().map { JournalText.nothing(about: $0) } ?? "the search found nothing in the journal"
    }

    /// The question without a search: one notification, device or topic.
    private func question() throws -> JournalQuestion? {
        if let notification { return .notification(notification) }
        guard words.isEmpty, state == nil, since == nil, device == nil || topic == nil else { return nil }
        if let device {
            guard let id = DeviceID(device) else { throw ValidationError(device, isNot: "a device's identifier") }
            return .device(id)
        }
        guard let topic else { return nil }
        guard let name = Topic(topic) else { throw ValidationError(topic, isNot: "a topic, like com.example.app") }
        return .topic(name)
    }
}
