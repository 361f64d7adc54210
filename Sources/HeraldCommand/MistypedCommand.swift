import ArgumentParser

/// A command that is not there, and the one that was most likely meant.
struct MistypedCommand: Hashable {
    /// The words that call the command which was to have it, like `herald agent`.
    let parent: String
    let typed: String
    let meant: String

    /// Looks at the words of a command line that the parser refuses.
    /// - Returns: Nil if every command in it is there, or nothing resembles what is not.
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
            guard let meant = NearestWord.to(argument, among: subcommands.map { Self.name(of: $0) }) else { return nil }
            (parent, typed, self.meant) = (words.joined(separator: " "), argument, meant)
            return
        }
        return nil
    }

    /// The word that calls a command.
    private static func name(of command: any ParsableCommand.Type) -> String {
        command.configuration.commandName ?? "\(command)".lowercased()
    }

    var message: String {
        "'\(LogText.escaped(typed, limit: 64))' is no command of '\(parent)': did you mean '\(parent) \(meant)'?"
    }
}
