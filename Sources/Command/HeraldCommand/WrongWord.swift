import ArgumentParser
import Foundation
import HeraldModel
import HeraldService

/// A command or option that does not exist, or stands in the wrong place, with what was most likely meant.
struct WrongWord: Hashable {
    let message: String
    /// The words of the command that it was for, like `herald agent`.
    let command: String
    /// The usage of that command.
    let usage: String

    private init(_ message: String, of words: [String], usage: String? = nil) {
        self.message = message
        command = words.joined(separator: " ")
        self.usage = usage ?? "\(command) <subcommand>"
    }

    /// Finds the first such word of a command line, without the program; nil if there is none.
    ///
    /// With `asksForHelp`, the parser answered it with a help text: then only its commands must exist.
    init?(_ arguments: [String], below root: any ParsableCommand.Type = Herald.self, asksForHelp: Bool = false) {
        var command = root
        var words = [Self.name(of: root)]
        let isHelp = arguments.first == "help"
        var rest = arguments.dropFirst(isHelp ? 1 : 0)
        while let argument = rest.first, !command.configuration.subcommands.isEmpty {
            let subcommands = command.configuration.subcommands
            let known = subcommands.map { Self.name(of: $0) }
            let parent = words.joined(separator: " ")
            if argument.hasPrefix("-") {
                guard !isHelp, !asksForHelp, let place = rest.firstIndex(where: { known.contains($0) }) else { break }
                let moved = words + [rest[place]] + rest[..<place] + rest[(place + 1)...]
                if let wrong = WrongWord(Array(moved.dropFirst()), below: root) {
                    self = wrong
                    return
                }
                let right = moved.map { ShellWord.quoted($0) }.joined(separator: " ")
                let message = "the options of '\(parent) \(rest[place])' stand behind it: \(Self.printable(right, 500))"
                self.init(message, of: words)
                return
            }
            guard let index = known.firstIndex(of: argument) else {
                let meant = Self.commands(meantBy: argument, among: known, of: words, below: root)
                let hint =
                    meant.isEmpty
                    ? "its commands are \(known.joined(separator: ", "))."
                    : "did you mean \(meant.map { "'\($0)'" }.joined(separator: " or "))?"
                self.init("'\(Self.printable(argument))' is not a command of '\(parent)': \(hint)", of: words)
                return
            }
            command = subcommands[index]
            words.append(argument)
            rest = rest.dropFirst()
        }
        if isHelp, let argument = rest.first, !argument.hasPrefix("-") {
            let parent = words.joined(separator: " ")
            self.init(
                "'\(Self.printable(argument))' is not a command of '\(parent)', which has none",
                of: words,
                usage: Herald.usageString(for: command)
            )
            return
        }
        guard !asksForHelp else { return nil }
        if let usual = command.configuration.defaultSubcommand { command = usual }
        let arguments = CommandArgument.all(of: command)
        let known = arguments.filter { !$0.isPositional }.flatMap(\.names) + ["help", "h", "version"]
        let options = rest.prefix { $0 != "--" }.lazy.compactMap { argument in
            // Names of more than one character have two dashes, so a known name with one is meant.
            Self.option(argument).flatMap { name in
                known.contains(name) && argument.hasPrefix(name.count == 1 ? "-" : "--") ? nil : (argument, name)
            }
        }
        guard let (argument, option) = options.first else { return nil }
        let typed = Self.printable(String(argument.prefix { $0 != "=" }))
        let values = arguments.filter(\.isPositional).map(\.valueName)
        let meant = NearestWord.all(to: option, among: known.filter { $0.count > 1 } + values)
            .map { values.contains($0) ? "<\($0)>' without a name before it" : "--\($0)'" }
        let hint = meant.isEmpty ? "" : ": did you mean \(meant.map { "'\($0)" }.joined(separator: " or "))?"
        self.init("Unknown option '\(typed)'\(hint)", of: words, usage: Herald.usageString(for: command))
    }

    /// The commands that were most likely meant: among a command's own, or of that name elsewhere.
    private static func commands(
        meantBy typed: String,
        among known: [String],
        of words: [String],
        below root: any ParsableCommand.Type
    ) -> [String] {
        let parent = words.joined(separator: " ")
        if typed == "help" { return [(["herald", "help"] + words.dropFirst()).joined(separator: " ")] }
        let meant = NearestWord.byMeaning(typed, among: known)
        guard meant.isEmpty else { return meant.map { "\(parent) \($0)" } }
        func below(_ command: any ParsableCommand.Type, _ path: String) -> [String] {
            command.configuration.subcommands.flatMap { part in
                let name = name(of: part)
                return (name == typed ? ["\(path) \(name)"] : []) + below(part, "\(path) \(name)")
            }
        }
        let elsewhere = below(root, name(of: root))
        guard elsewhere.isEmpty else { return Array(elsewhere.prefix(3)) }
        return NearestWord.bySpelling(typed, among: known).map { "\(parent) \($0)" }
    }

    /// The name of the option that an argument is; nil for a value.
    private static func option(_ argument: String) -> String? {
        let name = argument.drop { $0 == "-" }.prefix { $0 != "=" }
        // A number may be negative.
        guard argument.hasPrefix("-"), name.first?.isLetter ?? false else { return nil }
        return String(name)
    }

    /// The word that calls a command.
    private static func name(of command: any ParsableCommand.Type) -> String {
        command.configuration.commandName ?? "\(command)".lowercased()
    }

    private static func printable(_ text: String, _ limit: Int = 64) -> String {
        LogText.escaped(text, limit: limit, spelling: .terminal)
    }
}
