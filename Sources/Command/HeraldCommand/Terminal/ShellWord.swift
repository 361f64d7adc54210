import HeraldService

/// A text as one word of a shell command.
enum ShellWord {
    /// The text, in single quotes if it has characters that may mean something to a shell.
    static func quoted(_ text: String) -> String {
        let isPlain = text.utf8.allSatisfy { byte in
            switch byte {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "/"), UInt8(ascii: "."), UInt8(ascii: "-"),
                UInt8(ascii: "_"), UInt8(ascii: "+"), UInt8(ascii: ","), UInt8(ascii: "@"), UInt8(ascii: ":"):
                true
            default: false
            }
        }
        guard !isPlain || text.isEmpty else { return text }
        // By scalars: with a combining mark behind it, a quotation mark is another character.
        return "'" + text.unicodeScalars.map { $0 == "'" ? "'\\''" : String($0) }.joined() + "'"
    }
}
