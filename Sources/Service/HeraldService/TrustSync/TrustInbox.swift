import HeraldCluster
import HeraldMailbox
import NIOCore
import Synchronization

/// The messages of the shared trust that have come and are not taken yet, and who waits until they are in force.
package final class TrustInbox: Sendable {
    private struct State {
        var entries: [LogEntry] = []
        var waiting: [LogFollower.Done] = []
        var isOver = false
    }

    /// There is something to do.
    let arrivals = Signal()
    private let state = Mutex(State())

    func add(_ new: [LogEntry]) {
        // Copies, since a message may keep all that was read from the connection together with it.
        let copies = new.map { entry in
            LogEntry(
                subject: entry.subject,
                sequence: entry.sequence,
                payload: ByteBuffer(bytes: entry.payload.readableBytesView),
                isSetAside: entry.isSetAside
            )
        }
        state.withLock { $0.entries += copies }
        arrivals.send()
    }

    /// Removes the oldest messages, in the order of the log.
    func next(_ limit: Int) -> [LogEntry] {
        state.withLock { state in
            defer { state.entries.removeFirst(min(limit, state.entries.count)) }
            return Array(state.entries.prefix(limit))
        }
    }

    /// Puts messages back that could not be taken.
    func putBack(_ former: [LogEntry]) {
        state.withLock { $0.entries = former + $0.entries }
        arrivals.send()
    }

    /// Lets whoever takes the messages look at them.
    func wake() { arrivals.send() }

    // MARK: - In force

    /// Calls `done` once, from any thread, when everything is in force that any node had stored before this call.
    func catchUp(_ followers: [LogFollower], _ done: @escaping LogFollower.Done) {
        LogFollower.catchUp(followers) { [self] result in
            guard case .success = result else { return done(result) }
            let isOver = state.withLock { state in
                if !state.isOver { state.waiting.append(done) }
                return state.isOver
            }
            if isOver { done(.failure(.unavailable)) } else { arrivals.send() }
        }
    }

    /// Removes those that wait; what they wait for is among the messages, or was taken.
    func waiting() -> [LogFollower.Done] {
        state.withLock { state in
            defer { state.waiting = [] }
            return state.waiting
        }
    }

    /// Fails those that wait, now and from now on: nobody takes messages any more.
    func end() {
        state.withLock { $0.isOver = true }
        for done in waiting() { done(.failure(.unavailable)) }
    }
}
