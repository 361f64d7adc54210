package import NIOCore
package import Synchronization

/// Queue from any thread to one event loop, delivered in batches.
///
/// A hop to another loop costs some microseconds; a further item in the same hop a twentieth of one. So the first item
/// wakes the loop, and all items that arrive before it runs come in one batch.
///
/// Inlinable so that users specialize it for their item: the unspecialized code costs some 60 ns more per item.
package final class LoopInbox<Item: Sendable>: Sendable {
    @usableFromInline struct State {
        @usableFromInline var items: [Item] = []
        @usableFromInline var isWoken = false
    }

    @usableFromInline let eventLoop: any EventLoop
    @usableFromInline let receive: @Sendable ([Item]) -> Void
    @usableFromInline let state = Mutex(State())

    /// `receive` is called on the receiving loop with the items in order.
    @inlinable
    package init(on eventLoop: any EventLoop, receive: @escaping @Sendable ([Item]) -> Void) {
        self.eventLoop = eventLoop
        self.receive = receive
    }

    /// Adds an item; callable from any thread, including the loop itself.
    ///
    /// The queue has no limit of its own: each item stands for a request or a delivery that is limited elsewhere.
    @inlinable
    package func add(_ item: Item) {
        add(contentsOf: CollectionOfOne(item))
    }

    @inlinable
    package func add(contentsOf items: some Collection<Item>) {
        guard !items.isEmpty else { return }
        let wakes = state.withLock { state in
            state.items.append(contentsOf: items)
            defer { state.isWoken = true }
            return !state.isWoken
        }
        if wakes {
            eventLoop.execute { self.deliver() }
        }
    }

    @inlinable
    func deliver() {
        let items = state.withLock { state in
            state.isWoken = false
            let items = state.items
            state.items = []
            return items
        }
        receive(items)
    }
}
