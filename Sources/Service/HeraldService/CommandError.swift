import HeraldModel

/// The failure of a command, in one line that says what is wrong and how to fix it.
package struct CommandError: CodedError {
    /// The kind of failure.
    ///
    /// Errors are equal if their kinds are.
    package enum Code: Hashable, Sendable {
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
        /// The other side refused.
        case refused
        /// The other side does not answer.
        case unreachable
        /// No service runs on the data folder.
        case noService
    }

    package let code: Code
    package let message: String

    package init(_ code: Code, _ message: String) {
        self.code = code
        self.message = message
    }
}
