import Foundation
import HeraldConsole
import HeraldModel
import HeraldService

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

    /// Each line with the words of the guide below it.
    static func explained(_ entries: [JournalEntry]) -> [String] {
        entries.flatMap { entry in
            let words = JournalLife.Words(entry)
            let reason = entry.reason.map { " (\($0))" } ?? ""
            let head = "\(entry.time)  \(entry.state)\(reason)  \(entry.id)  \(entry.device)  \(entry.topic)"
            return [head.trimmingCharacters(in: .whitespaces), "    " + words.words]
                + (words.hint.isEmpty ? [] : ["    " + words.hint])
        }
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
