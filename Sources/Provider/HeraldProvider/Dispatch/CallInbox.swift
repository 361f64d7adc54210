import HeraldWire
import NIOCore

/// Hands calls from any thread to a dispatcher on its event loop.
struct CallInbox<Call: QueuedCall>: Sendable {
    enum Item: Sendable {
        case start(Call)
        case cancel(Call)
        /// Starts no further request on the connection of that number.
        case retire(link: Int)
        case shutDown(CheckedContinuation<Void, Never>?)
    }

    private let inbox: LoopInbox<Item>

    init(on eventLoop: any EventLoop, receive: @escaping @Sendable ([Item]) -> Void) {
        inbox = LoopInbox(on: eventLoop, receive: receive)
    }

    /// Makes one attempt, and waits for its outcome.
    func perform(_ call: Call) async -> Call.Outcome {
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                call.settle = { continuation.resume(returning: $0) }
                inbox.add(.start(call))
            }
        } onCancel: {
            inbox.add(.cancel(call))
        }
    }

    /// Starts the first attempts of many requests; each reports its outcome through ``QueuedCall/settle``.
    func start(_ calls: [Call]) {
        inbox.add(contentsOf: calls.lazy.map { .start($0) })
    }

    func cancel(_ calls: [Call]) {
        inbox.add(contentsOf: calls.lazy.map { .cancel($0) })
    }

    func retire(link: Int) {
        inbox.add(.retire(link: link))
    }

    /// Refuses new calls, waits for the current ones, and closes the connections.
    func shutDown() async {
        await withCheckedContinuation { inbox.add(.shutDown($0)) }
    }

    /// Shuts down without waiting.
    func abandon() {
        inbox.add(.shutDown(nil))
    }
}
