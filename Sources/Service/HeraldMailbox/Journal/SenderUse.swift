package import HeraldModel
import Synchronization

/// The requests of each credential since the start of the service.
package final class SenderUse: Sendable {
    /// The requests of one credential.
    package struct Counts: Hashable, Sendable {
        package var first: WallTime
        package var last: WallTime
        package var requests: Int
        package var refused: Int
    }

    /// By the sender's number; as long as the greatest that was counted.
    private let counts = Mutex<[Counts?]>([])

    package init() {}

    /// Counts requests of a moment.
    package func count(_ sender: SenderNumber, accepted: Int = 0, refused: Int = 0, at now: WallTime) {
        guard sender != .unknown else { return }
        let index = Int(sender.value)
        counts.withLock { counts in
            if counts.count <= index { counts += Array(repeating: nil, count: index + 1 - counts.count) }
            var one = counts[index] ?? Counts(first: now, last: now, requests: 0, refused: 0)
            one.last = now
            one.requests += accepted + refused
            one.refused += refused
            counts[index] = one
        }
    }

    /// The requests of a credential; nil if there was none.
    package func counts(of sender: SenderNumber) -> Counts? {
        counts.withLock { $0.indices.contains(Int(sender.value)) ? $0[Int(sender.value)] : nil }
    }
}
