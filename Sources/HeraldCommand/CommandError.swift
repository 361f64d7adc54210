/// Why a command failed, in one line for the person who typed it: what is wrong, and how to mend it.
struct CommandError: Error, Hashable {
    /// What kind of failure it is; equality of errors is equality of kinds.
    struct Code: Hashable, Sendable {
        private enum Kind: Hashable, Sendable {
            case configuration
            case file
            case folder
            case folderInUse
            case port
            case refused
            case unreachable
        }

        private let kind: Kind

        /// An option, a variable or a key of the configuration file says something that cannot be.
        static let configuration = Code(kind: .configuration)
        /// A file cannot be read or written.
        static let file = Code(kind: .file)
        /// The data folder is missing, foreign, damaged, or open to others.
        static let folder = Code(kind: .folder)
        /// Another process works on the data folder.
        static let folderInUse = Code(kind: .folderInUse)
        /// A door cannot listen where it should.
        static let port = Code(kind: .port)
        /// The other side understood and said no.
        static let refused = Code(kind: .refused)
        /// The other side does not answer.
        static let unreachable = Code(kind: .unreachable)
    }

    let code: Code
    let message: String

    init(_ code: Code, _ message: String) {
        self.code = code
        self.message = message
    }

    static func == (left: CommandError, right: CommandError) -> Bool {
        left.code == right.code
    }

    func hash(into hasher: inout Hasher) {
        hasher.combine(code)
    }
}

extension CommandError: CustomStringConvertible {
    var description: String { message }
}
