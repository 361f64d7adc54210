import Synchronization

/// Whether the store takes more: a few reasons not to, each set and cleared by those who know, read without a lock.
final class StoreGate: Sendable {
    /// A reason to take no more.
    struct Reason: OptionSet, Sendable {
        let rawValue: UInt8

        /// Too much waits for a commit.
        static let overloaded = Reason(rawValue: 1)
        /// The disk has less free space than the mark.
        static let lowOnSpace = Reason(rawValue: 2)
        /// The last write failed.
        static let stalled = Reason(rawValue: 4)
        /// Nothing more can be stored until the process starts again.
        static let failed = Reason(rawValue: 8)
        /// The store is closed, or about to be.
        static let closed = Reason(rawValue: 16)
    }

    private let reasons = Atomic<UInt8>(0)

    var isOpen: Bool { reasons.load(ordering: .relaxed) == 0 }

    func has(_ reason: Reason) -> Bool {
        reasons.load(ordering: .relaxed) & reason.rawValue != 0
    }

    func set(_ reason: Reason) {
        reasons.bitwiseOr(reason.rawValue, ordering: .relaxed)
    }

    func clear(_ reason: Reason) {
        reasons.bitwiseAnd(~reason.rawValue, ordering: .relaxed)
    }
}
