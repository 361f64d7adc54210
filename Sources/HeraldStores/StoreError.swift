/// Why a store cannot be opened, read or written: what is wrong, and what to do about it, in one line.
package struct StoreError: Error, Sendable {
    /// The kind of trouble.
    package struct Code: Hashable, Sendable {
        private enum Kind: Hashable, Sendable {
            case foreignFile
            case newerVersion
            case damaged
            case notWritable
            case cannotOpen
            case unsafe
            case cannotRead
            case cannotWrite
            case syncFailed
            case closed
        }

        private let kind: Kind

        /// The file belongs to another program.
        package static let foreignFile = Code(kind: .foreignFile)
        /// The file was written by a newer Herald.
        package static let newerVersion = Code(kind: .newerVersion)
        /// The file's contents contradict themselves.
        package static let damaged = Code(kind: .damaged)
        /// The file or its folder may not be written.
        package static let notWritable = Code(kind: .notWritable)
        /// The file cannot be opened for another reason (no such folder, another process uses it, …).
        package static let cannotOpen = Code(kind: .cannotOpen)
        /// The database did not accept a setting without which a commit is not durable.
        package static let unsafe = Code(kind: .unsafe)
        /// A read failed.
        package static let cannotRead = Code(kind: .cannotRead)
        /// A write failed and nothing of it is kept; it may succeed later (a full disk).
        package static let cannotWrite = Code(kind: .cannotWrite)
        /// A write failed in a way after which no later success can be believed; the process has to end.
        package static let syncFailed = Code(kind: .syncFailed)
        /// The store is closed.
        package static let closed = Code(kind: .closed)
    }

    package let code: Code
    /// For people: what is wrong, and how to mend it.
    package let message: String

    package init(_ code: Code, _ message: String) {
        self.code = code
        self.message = message
    }

    static let closed = StoreError(.closed, "the store is closed")
}

extension StoreError: CustomStringConvertible {
    package var description: String { message }
}

extension StoreError: Equatable {
    package static func == (left: StoreError, right: StoreError) -> Bool {
        left.code == right.code
    }
}
