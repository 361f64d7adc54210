import HeraldModel
import Logging
import Synchronization

/// Puts the device tokens of removed apps on the feedback list when a provider sends to them.
///
/// It remembers which tokens are on the list. So a provider that sends to a dead token again and again costs the store one
/// write.
final class FeedbackRecorder: Sendable {
    /// Maximum number of remembered tokens; past it the recorder forgets all, and each costs one more write.
    ///
    /// 100,000: some 4 MB, and as many as the feedback service sends on one connection.
    static let rememberedTokens = 100_000

    private let store: any FeedbackStore
    private let logger: Logger
    /// The generations of the tokens on the list.
    private let listed = Mutex<[Slot: UInt32]>([:])

    init(store: any FeedbackStore, logger: Logger) {
        self.store = store
        self.logger = logger
    }

    /// Adds a token, unless it is on the list.
    func add(_ record: FeedbackRecord) {
        let isNew = listed.withLock { listed in
            if let known = listed[record.slot], known >= record.generation { return false }
            if listed.count >= Self.rememberedTokens { listed = [:] }
            listed[record.slot] = record.generation
            return true
        }
        guard isNew else { return }
        store.addFeedback(record) { [self] result in
            guard case .failure(let error) = result else { return }
            // The next notification for the token tries again.
            forget([record.slot])
            logger.warning("could not put a dead token on the feedback list", metadata: ["error": "\(error)"])
        }
    }

    /// Forgets the tokens of slots: they are off the list.
    func forget(_ slots: some Sequence<Slot>) {
        listed.withLock { listed in
            for slot in slots { listed[slot] = nil }
        }
    }
}
