/// The failure of a command, in one line that says what is wrong and how to fix it.
struct CommandError: Error, Hashable {
    /// The kind of failure.
    ///
    /// Errors are equal if their kinds are.
    enum Code: Hashable, Sendable {
        /// An option, a variable or a key of the configuration file has a value that is not allowed.
        case configuration
        /// A file cannot be read or written.
        case file
        /// A file that the settings name is missing, forbidden, open to others, or not what it should be.
        case unusableFile
        /// The data folder is missing, damaged, open to others, or not Herald's.
        case folder
        /// Another process works on the data folder.
        case folderInUse
        /// A listener cannot listen on its address.
        case port
        /// The other side refused.
        case refused
        /// The service has refused this device for good.
        case dismissed
        /// The other side does not answer.
        case unreachable
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
