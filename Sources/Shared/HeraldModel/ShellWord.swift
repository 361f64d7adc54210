/// A text as one word of a shell command.
package enum ShellWord {
    /// The text, in single quotes if it has characters that may mean something to a shell.
    package static func quoted(_ text: String) -> String {
        let isPlain = text.utf8.allSatisfy { $0.isASCIIAlphanumeric || "/.-_+,@:".utf8.contains($0) }
        guard !isPlain || text.isEmpty else { return text }
        // By scalars: with a combining mark behind it, a quotation mark is another character.
        return "'" + text.unicodeScalars.map { $0 == "'" ? "'\\''" : String($0) }.joined() + "'"
    }
}
