import ArgumentParser
import Foundation
import HeraldService

/// An option, a flag or a value without a name of a command, as the parser describes it.
struct CommandArgument {
    /// Without dashes; none for a value without a name.
    let names: [String]
    let valueName: String
    let isPositional: Bool
    /// Whether a value follows its name.
    let hasValue: Bool

    /// All arguments of a command.
    static func all(of command: any ParsableCommand.Type) -> [CommandArgument] {
        struct Description: Decodable {
            struct Command: Decodable {
                struct Argument: Decodable {
                    struct Name: Decodable {
                        let name: String
                    }

                    let kind: String
                    let names: [Name]?
                    let valueName: String?
                }

                let arguments: [Argument]?
            }

            let command: Command
        }
        let text = Data(command._dumpHelp().utf8)
        let found = (try? JSONDecoder().decode(Description.self, from: text))?.command.arguments ?? []
        return found.map {
            CommandArgument(
                names: $0.names?.map(\.name) ?? [],
                valueName: $0.valueName ?? "",
                isPositional: $0.kind == "positional",
                hasValue: $0.kind == "option"
            )
        }
    }

    /// A command line in which values that begin with a dash, but not like a name, as `-5` and `-1h`, are values for the parser.
    ///
    /// It would take them for short options. What reads them then says in its own words what is wrong with them.
    static func withNegativeValues(_ line: [String]) -> [String] {
        func isNegative(_ word: String) -> Bool {
            word.hasPrefix("-") && word.dropFirst().first.map { !$0.isLetter && $0 != "-" } == true
        }
        let words = line.prefix { $0 != "--" }
        guard words.contains(where: isNegative) else { return line }
        var command: any ParsableCommand.Type = Herald.self
        for word in words {
            let parts = command.configuration.subcommands
            guard let next = parts.first(where: { $0._commandName == word }) else { break }
            command = next
        }
        if let usual = command.configuration.defaultSubcommand { command = usual }
        let named = Set(all(of: command).filter(\.hasValue).flatMap(\.names).map { "--\($0)" })
        var (namedWords, values): ([String], [String]) = ([], [])
        for word in words {
            if isNegative(word), let option = namedWords.last, named.contains(option) {
                namedWords[namedWords.count - 1] = "\(option)=\(word)"
            } else if isNegative(word) {
                values.append(word)
            } else {
                namedWords.append(word)
            }
        }
        let others = line.dropFirst(words.count + 1)
        return namedWords + (values.isEmpty && others.isEmpty ? [] : ["--"] + values + others)
    }
}
