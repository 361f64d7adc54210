import Synchronization

/// How much memory the notifications take that the service holds, wherever they are: on their way to a device, into the
/// store, or in the window of a device that does not acknowledge.
///
/// A letter that is handed on is counted, and counted out when the last who held it lets it go.
package final class LetterLoad: Sendable {
    /// What a letter takes besides its payload: itself, and its entries in a line, a window and a queue.
    private static let overhead = 512

    private let bytes = Atomic<Int>(0)
    private let limit: Int

    package init(limit: Int) {
        self.limit = limit
    }

    /// How many bytes are held.
    package var current: Int { bytes.load(ordering: .relaxed) }

    /// Whether no more notifications are to be taken.
    var isFull: Bool { current >= limit }

    /// Whether devices that do not keep up are to hold less: what they cannot take waits on the disk instead.
    var isHigh: Bool { current >= limit / 2 }

    func add(payloadBytes: Int) {
        bytes.wrappingAdd(payloadBytes + Self.overhead, ordering: .relaxed)
    }

    func remove(payloadBytes: Int) {
        bytes.wrappingSubtract(payloadBytes + Self.overhead, ordering: .relaxed)
    }
}
