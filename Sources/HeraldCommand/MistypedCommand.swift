import ArgumentParser

/// A subcommand that does not exist, with the nearest one that does.
struct MistypedCommand: Hashable {
    /// The command above it, like `herald agent`.
    let parent: String
    let typed: String
    /// The subcommands of the parent.
    let known: [String]

    /// Finds the first unknown subcommand of a command line; nil if there is none.
    init?(_ arguments: [String], below root: any ParsableCommand.Type = Herald.self) {
        var command = root
        var words = [Self.name(of: root)]
        for argument in arguments {
            let subcommands = command.configuration.subcommands
            guard !subcommands.isEmpty, !argument.hasPrefix("-") else { return nil }
            if let next = subcommands.first(where: { Self.name(of: $0) == argument }) {
                command = next
                words.append(argument)
                continue
            }
            (parent, typed) = (words.joined(separator: " "), argument)
            known = subcommands.map { Self.name(of: $0) }
            return
        }
        return nil
    }

    /// The word that calls a command.
    private static func name(of command: any ParsableCommand.Type) -> String {
        command.configuration.commandName ?? "\(command)".lowercased()
    }

    var message: String {
        let meant = NearestWord.to(typed, among: known).map { "did you mean '\(parent) \($0)'?" }
        let hint = meant ?? "its commands are \(known.joined(separator: ", "))."
        return "'\(LogText.escaped(typed, limit: 64))' is not a command of '\(parent)': \(hint)"
    }
}
