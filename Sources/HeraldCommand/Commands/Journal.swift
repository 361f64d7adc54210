import ArgumentParser
import Foundation
import HeraldConsole
import HeraldMailbox
import HeraldModel
import HeraldStores
import Logging

/// `herald journal`: the events of notifications.
struct Journal: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Show what became of a notification.",
        discussion: """
            Prints one line for each event, oldest first: of one notification by its apns-id or apns-unique-id, or of \
            all notifications of a device or a topic. Exits 1 for an unknown notification. Asks the running service, \
            which in a cluster asks all nodes; if none runs, it reads the folder.

            Example:
              herald journal 2F7CA8F4-3B5C-4F4E-9F0E-6C0E4D2D2C11
              herald journal --device 833dggt3rc56 --limit 20
            """
    )

    @Argument(help: "The notification's apns-id or apns-unique-id.")
    var apnsId: String?

    @Option(help: ArgumentHelp("A device's identifier, as `herald device list` shows it.", valueName: "id"))
    var device: String?

    @Option(help: ArgumentHelp("A topic, in both environments.", valueName: "id"))
    var topic: String?

    @Option(
        help: ArgumentHelp(
            "Lines at most, 1 to \(AdminRoutes.journalLimit.upperBound); the newest are shown.",
            valueName: "n"
        )
    )
    var limit = AdminRoutes.journalDefault

    @OptionGroup var data: DataOptions

    func validate() throws {
        guard [apnsId, device, topic].compactMap({ $0 }).count == 1 else {
            throw ValidationError("Name a notification by its apns-id, or --device, or --topic.")
        }
        guard AdminRoutes.journalLimit.contains(limit) else {
            throw ValidationError("--limit is a number from 1 to \(AdminRoutes.journalLimit.upperBound).")
        }
        _ = try question()
    }

    func run() async throws {
        let question = try question()
        let folder = try data.folder()
        let answer =
            switch try FolderLock.attempt(folder) {
            case .taken(let lock):
                JournalAnswer(try await JournalReader.entries(question, limit: limit, in: folder, under: lock))
            case .held: try await ControlClient(folder: folder).journal(query(question))
            }
        if data.json { try Terminal.sayJSON(answer.lines) }
        for node in answer.missingNodes { Terminal.complain("herald: \(JournalText.missing(node))") }
        guard !answer.lines.isEmpty else {
            if case .notification = question { throw CommandError(.refused, JournalText.nothing(about: question)) }
            return Terminal.complain("herald: \(JournalText.nothing(about: question))")
        }
        guard !data.json else { return }
        JournalText.lines(answer.lines).forEach(Terminal.say)
        if case .notification = question { JournalText.refusals(answer.lines).forEach(Terminal.say) }
    }

    private func question() throws -> JournalQuestion {
        if let apnsId {
            guard let id = NotificationID(apnsId) else { throw wrong(apnsId, "an apns-id, which is a UUID") }
            return .notification(id)
        }
        if let device {
            guard let id = DeviceID(device) else { throw wrong(device, "a device's identifier") }
            return .device(id)
        }
        guard let topic = Topic(topic ?? "") else { throw wrong(topic ?? "", "a topic, like com.example.app") }
        return .topic(topic)
    }

    private func wrong(_ text: String, _ wanted: String) -> ValidationError {
        ValidationError("'\(LogText.escaped(text, limit: 64))' is not \(wanted).")
    }

    /// Nothing that an identifier or a topic may hold means anything in a query.
    private func query(_ question: JournalQuestion) -> String {
        let subject =
            switch question {
            case .notification(let id): "notification=\(id)"
            case .device(let id): "device=\(id)"
            case .topic(let topic): "topic=\(topic)"
            }
        return "\(subject)&limit=\(limit)"
    }
}

/// The journal as people read it.
enum JournalText {
    static func nothing(about question: JournalQuestion) -> String {
        switch question {
        case .notification(let id):
            "nothing in the journal about \(id): it was too long ago, or it never came to the service"
        case .device(let id):
            "nothing in the journal about the device \(id); `herald device list` shows the identifiers of devices"
        case .topic(let topic):
            "nothing in the journal about the topic \(topic)"
        }
    }

    /// A node of the cluster that did not answer.
    static func missing(_ node: String) -> String {
        "node \(node) did not answer: its lines are missing (herald cluster nodes shows its state)"
    }

    /// The words of refusals, below the table.
    static func refusals(_ entries: [JournalEntry]) -> [String] {
        entries.compactMap { entry in
            guard let status = entry.status, let reason = entry.reason, let words = entry.explanation else {
                return nil
            }
            return "\(status) \(reason): \(words)"
        }
    }

    /// The table; with the names of nodes in a cluster.
    static func lines(_ entries: [JournalEntry]) -> [String] {
        let hasNodes = entries.contains { $0.node != nil }
        let hasProviders = entries.contains { $0.provider != nil }
        var table = TextTable(
            ["time"] + (hasNodes ? ["node"] : []) + ["what", "apns-id", "device", "topic"]
                + (hasProviders ? ["provider"] : [])
        )
        for entry in entries {
            var what = entry.state
            if let reason = entry.reason { what += " (\(reason))" }
            if let devices = entry.devices { what += devices == 1 ? " (1 device)" : " (\(devices) devices)" }
            if let replacement = entry.replacement { what += " by \(replacement)" }
            let isSandbox = entry.environment == .sandbox && !entry.topic.isEmpty
            let topic = isSandbox ? "\(entry.topic) (sandbox)" : entry.topic
            table.add(
                [entry.time] + (hasNodes ? [entry.node ?? ""] : []) + [what, entry.id, entry.device, topic]
                    + (hasProviders ? [entry.provider ?? ""] : [])
            )
        }
        return table.lines
    }
}

extension JournalReader {
    /// The journal of a folder on which no service runs.
    static func entries(
        _ question: JournalQuestion,
        limit: Int,
        in folder: DataFolder,
        under lock: FolderLock
    ) async throws -> [JournalEntry] {
        defer { withExtendedLifetime(lock) {} }
        // A service that never ran has no store, and this is no reason to make one.
        guard FileManager.default.fileExists(atPath: folder.databasePath) else { return [] }
        let silent = Logger(label: "herald.journal") { _ in SwiftLogNoOpLogHandler() }
        let clock = ServiceClock()
        let store = try SQLiteStore(path: folder.databasePath, clock: clock, logger: silent) { _ in
            // A command that only reads has nothing that could be lost.
        }
        let directory = SingleNodeDirectory()
        let postOffice = PostOffice(clock: clock, store: store, directory: directory, logger: silent)
        let registry = Registry(
            store: store,
            postOffice: postOffice,
            directory: directory,
            clock: clock,
            logger: silent
        )
        do {
            try await registry.load()
            let entries = try await JournalReader(store: store, registry: registry, senders: store.senders)
                .entries(question, limit: limit)
            await store.close()
            return entries
        } catch {
            await store.close()
            throw error
        }
    }
}
