import Synchronization

/// The memory of all notifications that the service holds: in flight, on their way into the store, or in a window.
///
/// An envelope counts from its first effect until it is released.
package final class EnvelopeMemory: Sendable {
    /// The size of an envelope besides its payload: itself, and its entries in a connection, a window and a queue.
    private static let overhead = 512

    private let bytes = Atomic<Int>(0)
    private let limit: Int

    package init(limit: Int) {
        self.limit = limit
    }

    /// The bytes in use.
    package var current: Int { bytes.load(ordering: .relaxed) }

    /// Whether the service refuses new notifications.
    var isFull: Bool { current >= limit }

    /// Whether memory is short, so that a slow device has less in flight and more on disk.
    var isHigh: Bool { current >= limit / 2 }

    func add(payloadBytes: Int) {
        bytes.wrappingAdd(payloadBytes + Self.overhead, ordering: .relaxed)
    }

    func remove(payloadBytes: Int) {
        bytes.wrappingSubtract(payloadBytes + Self.overhead, ordering: .relaxed)
    }
}
