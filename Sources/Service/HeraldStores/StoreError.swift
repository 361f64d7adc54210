import HeraldModel

/// An error of opening, reading or writing a store: the problem and its remedy, in one line.
package struct StoreError: CodedError {
    /// The kind of error.
    package enum Code: Hashable, Sendable {
        /// The file belongs to another program.
        case foreignFile
        /// The file was written by a newer Herald.
        case newerVersion
        /// The file is damaged.
        case damaged
        /// The file or its folder is not writable.
        case notWritable
        /// The file cannot be opened for another reason, for example because another process uses it.
        case cannotOpen
        /// The database did not accept a setting that durable commits need.
        case unsafe
        /// A read failed.
        case cannotRead
        /// A write failed and was rolled back; it may succeed later, for example on a full disk.
        case cannotWrite
        /// A sync failed, so no later success can be trusted; the process has to end.
        case syncFailed
        /// The files were deleted, moved or replaced while they are open.
        case displaced
        /// The store is closed.
        case closed
    }

    package let code: Code
    /// The problem and its remedy, for the operator.
    package let message: String

    package init(_ code: Code, _ message: String) {
        self.code = code
        self.message = message
    }

    static let closed = StoreError(.closed, "the store is closed")

    static func displaced(path: String) -> StoreError {
        StoreError(
            .displaced,
            "the store \(path) was deleted, moved or replaced while Herald runs: if the folder was moved, move it back; "
                + "otherwise stop Herald, restore a backup, and start Herald"
        )
    }
}
