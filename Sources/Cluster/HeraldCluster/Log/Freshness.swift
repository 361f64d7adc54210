package import NIOCore
import Synchronization

/// The end of the time in which what a node knows of a part of the log counts as fresh.
///
/// Each proof of freshness moves it on. Asking costs one load of an atomic and a look at the clock.
package final class Freshness: Sendable {
    private let end = Atomic<UInt64>(0)

    package init() {}

    /// Whether the time is over, or has never begun.
    package func isOver(at now: NIODeadline) -> Bool { now.uptimeNanoseconds > end.load(ordering: .relaxed) }

    /// Moves the end; it never goes back.
    package func extend(to new: NIODeadline) { end.max(new.uptimeNanoseconds, ordering: .relaxed) }
}
