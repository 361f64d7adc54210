import Yams

/// The line and the explanation of a mistake in a YAML text.
struct YAMLError {
    /// From 1; nil where the parser names none.
    let line: Int?
    let words: String

    init(_ error: YamlError, in text: String) {
        let problem: String
        switch error {
        case .scanner(_, let said, let mark, _), .parser(_, let said, let mark, _), .composer(_, let said, let mark, _):
            (line, problem) = (mark.line, said)
        case .reader(let said, let offset, _, _):
            (line, problem) = (offset.map { text.prefix($0).count(where: \.isNewline) + 1 }, said)
        case .duplicatedKeysInMapping(let keys, let context):
            let key = keys.first ?? "?"
            line = Self.lineOfSecond(key, in: text) ?? context.mark.line
            words = "the key `\(LogText.escaped(key, limit: 64))` appears twice: remove one of them"
            return
        default:
            (line, problem) = (nil, "the text cannot be read")
        }
        words = "this is not YAML (\(problem)): fix the file"
    }

    func error(path: String) -> CommandError {
        CommandError(.configuration, "\(path)\(line.map { ":\($0)" } ?? ""): \(words)")
    }

    /// Where a key is for the second time: the parser marks the first.
    ///
    /// The lines up to there are the fewest of which the parser says the same.
    private static func lineOfSecond(_ key: String, in text: String) -> Int? {
        let lines = text.split(omittingEmptySubsequences: false, whereSeparator: \.isNewline)
        return lines.indices.first { index in
            guard lines[index].contains(key) else { return false }
            do {
                _ = try Yams.compose(yaml: lines[...index].joined(separator: "\n"))
                return false
            } catch YamlError.duplicatedKeysInMapping(let keys, _) {
                return keys.contains(key)
            } catch {
                return false
            }
        }
        .map { $0 + 1 }
    }
}
