package import NIOCore
package import Synchronization

/// Things that any thread leaves for one event loop, handed over in batches.
///
/// A hop to another loop costs some microseconds, an item in a hop that happens anyway a twentieth of one. So the first
/// item left wakes the loop, and whatever is left until the loop gets there comes with it.
///
/// Inlinable, so that those who use it have it for their own kind of item: what handles any kind takes some 60 ns more
/// for each.
package final class LoopInbox<Item: Sendable>: Sendable {
    @usableFromInline struct State {
        @usableFromInline var items: [Item] = []
        @usableFromInline var isWoken = false

        @inlinable init() {}
    }

    @usableFromInline let eventLoop: any EventLoop
    @usableFromInline let receive: @Sendable ([Item]) -> Void
    @usableFromInline let state = Mutex(State())

    /// - Parameters:
    ///   - eventLoop: Where the items are wanted.
    ///   - receive: Called on that loop with what was left, in order.
    @inlinable
    package init(on eventLoop: any EventLoop, receive: @escaping @Sendable ([Item]) -> Void) {
        self.eventLoop = eventLoop
        self.receive = receive
    }

    /// Leaves an item; callable from any thread, the loop itself included.
    ///
    /// How many can be left is bounded by those who leave them: each stands for a request or a delivery that is counted
    /// elsewhere.
    @inlinable
    package func leave(_ item: Item) {
        let wakes = state.withLock { state in
            state.items.append(item)
            defer { state.isWoken = true }
            return !state.isWoken
        }
        if wakes {
            eventLoop.execute { self.handOver() }
        }
    }

    @inlinable
    func handOver() {
        let items = state.withLock { state in
            state.isWoken = false
            let items = state.items
            state.items = []
            return items
        }
        receive(items)
    }
}

/// One value for each event loop of a group, made when the group is.
package struct PerLoop<Value: Sendable>: Sendable {
    private let values: [ObjectIdentifier: Value]
    /// The values in the order of the loops.
    package let all: [Value]

    package init(_ group: any EventLoopGroup, make: (any EventLoop) -> Value) {
        var values: [ObjectIdentifier: Value] = [:]
        var all: [Value] = []
        for loop in group.makeIterator() {
            let value = make(loop)
            values[ObjectIdentifier(loop)] = value
            all.append(value)
        }
        self.values = values
        self.all = all
    }

    /// The value of a loop; nil if the loop is not of the group.
    package subscript(loop: any EventLoop) -> Value? {
        values[ObjectIdentifier(loop)]
    }
}
