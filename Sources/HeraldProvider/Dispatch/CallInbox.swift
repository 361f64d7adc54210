import NIOCore
import Synchronization

/// What any thread leaves for a dispatcher, which takes it on its event loop: the first item wakes the loop, and what is
/// left until it gets there comes with it.
final class CallInbox<Call: QueuedCall>: Sendable {
    enum Item: Sendable {
        case start(Call)
        case cancel(Call)
        /// Something of the dispatcher's own, in its turn.
        case run(@Sendable () -> Void)
        case shutDown(CheckedContinuation<Void, Never>?)
    }

    private struct State {
        var items: [Item] = []
        var isWoken = false
    }

    private let state = Mutex(State())

    /// Hands a call over, and waits for its outcome.
    ///
    /// `wake` is to have the loop take what was left; it may be called on any thread.
    func perform(_ call: Call, wake: @escaping @Sendable () -> Void) async -> Call.Outcome {
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                call.settle = { continuation.resume(returning: $0) }
                leave(.start(call), wake: wake)
            }
        } onCancel: {
            leave(.cancel(call), wake: wake)
        }
    }

    func leave(_ item: Item, wake: () -> Void) {
        let wakes = state.withLock { state in
            state.items.append(item)
            defer { state.isWoken = true }
            return !state.isWoken
        }
        if wakes { wake() }
    }

    /// What was left since the last time.
    func take() -> [Item] {
        state.withLock { state in
            state.isWoken = false
            defer { state.items = [] }
            return state.items
        }
    }
}
