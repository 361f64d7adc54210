import ArgumentParser
import Foundation

/// A command or option that does not exist, or stands in the wrong place, with what was most likely meant.
struct WrongWord: Hashable {
    let message: String
    /// The words of the command that it was for, like `herald agent`.
    let command: String
    /// The usage of that command.
    let usage: String

    /// Finds the first such word of a command line; nil if there is none.
    init?(_ arguments: [String], below root: any ParsableCommand.Type = Herald.self) {
        var command = root
        var words = [Self.name(of: root)]
        var rest = arguments[...]
        while let argument = rest.first, !command.configuration.subcommands.isEmpty {
            let subcommands = command.configuration.subcommands
            let known = subcommands.map { Self.name(of: $0) }
            let parent = words.joined(separator: " ")
            if argument.hasPrefix("-") {
                guard let place = rest.firstIndex(where: { known.contains($0) }) else { break }
                let moved = words + [rest[place]] + rest[..<place] + rest[(place + 1)...]
                let right = moved.map { ShellWord.quoted($0) }.joined(separator: " ")
                message = "the options of '\(parent) \(rest[place])' stand behind it: \(Self.printable(right, 500))"
                (self.command, usage) = (parent, "\(parent) <subcommand>")
                return
            }
            guard let index = known.firstIndex(of: argument) else {
                let meant = NearestWord.to(argument, among: known).map { "did you mean '\(parent) \($0)'?" }
                let hint = meant ?? "its commands are \(known.joined(separator: ", "))."
                message = "'\(Self.printable(argument))' is not a command of '\(parent)': \(hint)"
                (self.command, usage) = (parent, "\(parent) <subcommand>")
                return
            }
            command = subcommands[index]
            words.append(argument)
            rest = rest.dropFirst()
        }
        if let usual = command.configuration.defaultSubcommand { command = usual }
        let known = Self.options(of: command)
        let options = rest.prefix { $0 != "--" }.lazy.compactMap { argument in
            // All options have two dashes, so a known name with one is meant.
            Self.option(argument).flatMap { known.contains($0) && argument.hasPrefix("--") ? nil : (argument, $0) }
        }
        guard let (argument, option) = options.first
        else { return nil }
        let meant = NearestWord.all(to: option, among: known).map { "'--\($0)'" }
        let hint = meant.isEmpty ? "" : ": did you mean \(meant.joined(separator: " or "))?"
        message = "Unknown option '\(Self.printable(String(argument.prefix { $0 != "=" })))'\(hint)"
        self.command = words.joined(separator: " ")
        usage = Herald.usageString(for: command)
    }

    /// The name of the option that an argument is; nil for a value.
    private static func option(_ argument: String) -> String? {
        let name = argument.drop { $0 == "-" }.prefix { $0 != "=" }
        // A short name may stand for several flags, and a number may be negative.
        guard argument.hasPrefix("-"), name.count > 1, name.first?.isLetter ?? false else { return nil }
        return String(name)
    }

    /// The long names of a command's options, as its description has them.
    private static func options(of command: any ParsableCommand.Type) -> [String] {
        struct Description: Decodable {
            struct Command: Decodable {
                struct Argument: Decodable {
                    struct Name: Decodable {
                        let name: String
                    }

                    let names: [Name]?
                }

                let arguments: [Argument]?
            }

            let command: Command
        }
        let text = Data(command._dumpHelp().utf8)
        let found = (try? JSONDecoder().decode(Description.self, from: text))?.command.arguments ?? []
        return found.flatMap { $0.names ?? [] }.map(\.name) + ["help", "version"]
    }

    /// The word that calls a command.
    private static func name(of command: any ParsableCommand.Type) -> String {
        command.configuration.commandName ?? "\(command)".lowercased()
    }

    private static func printable(_ text: String, _ limit: Int = 64) -> String {
        LogText.escaped(text, limit: limit, spelling: .terminal)
    }
}
