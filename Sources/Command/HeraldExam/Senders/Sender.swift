/// Drives a sender through a scenario.
protocol Sender: Sendable {
    /// Asks the sender for pushes to the service, which is always at the same place.
    func send(_ pushes: [ExamPush], to place: ExamPlace) async throws
    /// Lets the sender finish, and ends it.
    /// - Returns: The last lines of its standard error.
    func close() async -> [String]
}

/// How the user names a sender.
package enum SenderKind: Sendable {
    /// A program that reads orders and writes outcomes as lines of JSON.
    case adapter(String)
    /// A command that sends a batch and ends.
    case command(String)
    /// The URL of a server that sends what is posted to it.
    case hook(String)

    /// Whether it says what became of each push.
    var hasWords: Bool { if case .adapter = self { true } else { false } }

    /// Whether it may answer before it sends.
    var answersFirst: Bool { if case .hook = self { true } else { false } }

    /// Why a scenario cannot be played in this way; nil if it can.
    func hindrance(to scenario: Scenario) -> String? {
        switch self {
        case .adapter: return nil
        case .command where scenario.needsOneProcess: return "needs a sender that lives through several batches"
        case .command(let line) where line.contains("{token}") && scenario.expectation.connections != nil:
            return "needs one process for a batch"
        case .command, .hook: return scenario.needsOrders ? "needs an adapter, which learns what to send" : nil
        }
    }

    /// How it is driven, in words.
    var words: String {
        switch self {
        case .adapter(let line): "adapter: \(line)"
        case .command(let line): "command: \(line)"
        case .hook(let url): "hook: \(url)"
        }
    }

    /// Makes the sender for one scenario.
    func sender(_ ledger: Ledger, folder: String) -> any Sender {
        switch self {
        case .adapter(let line): AdapterSender(line, ledger, folder: folder)
        case .command(let line): CommandSender(line, ledger, folder: folder)
        case .hook(let url): HookSender(url, ledger)
        }
    }
}
