import Synchronization

/// Whether the store accepts puts: a set of reasons against it, read without a lock.
final class StoreGate: Sendable {
    /// A reason to refuse puts.
    struct Reason: OptionSet, Sendable {
        let rawValue: UInt8

        /// Too many puts wait for a commit.
        static let overloaded = Reason(rawValue: 1)
        /// The disk has less free space than the configured minimum.
        static let lowOnSpace = Reason(rawValue: 2)
        /// The last write failed.
        static let stalled = Reason(rawValue: 4)
        /// The store has failed until the process starts again.
        static let failed = Reason(rawValue: 8)
        /// The store is closed or closing.
        static let closed = Reason(rawValue: 16)
        /// The files at the store's path are no longer those that are open.
        static let displaced = Reason(rawValue: 32)
    }

    private let reasons = Atomic<UInt8>(0)

    var isOpen: Bool { reasons.load(ordering: .relaxed) == 0 }

    func has(_ reason: Reason) -> Bool {
        reasons.load(ordering: .relaxed) & reason.rawValue != 0
    }

    func isOnly(_ reason: Reason) -> Bool { reasons.load(ordering: .relaxed) == reason.rawValue }

    func set(_ reason: Reason) {
        reasons.bitwiseOr(reason.rawValue, ordering: .relaxed)
    }

    func clear(_ reason: Reason) {
        reasons.bitwiseAnd(~reason.rawValue, ordering: .relaxed)
    }
}
