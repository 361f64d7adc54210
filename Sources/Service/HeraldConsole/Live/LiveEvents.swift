import HeraldModel
import HeraldWeb
import Synchronization

/// The events that one page watches.
final class LiveEvents: Sendable {
    /// Kinds of events.
    enum Kind: String, CaseIterable {
        case counts
        case lines
        case problems
        case status
        case caught
    }

    /// Lines of the journal in one event.
    private struct Lines: Encodable {
        let items: [JournalEntry]
        let more: Int
    }

    private struct Skipped: Encodable {
        let count: UInt64
    }

    private struct Caught: Encodable {
        let newest: UInt64
    }

    /// A number that changes with the service's status.
    private struct Status: Encodable {
        let version: Int
    }

    private struct State {
        /// The second whose counts were sent.
        var counted: Int64?
        /// The version of the problems that were sent.
        var version: Int?
        var status: Int?
        /// The newest caught message that the page knows of.
        var caught: UInt64?
    }

    private let live: LiveConsole
    private let kinds: Set<Kind>
    private let follower: (any LineFollower)?
    private let state = Mutex(State())

    /// Called when nobody watches any more.
    private let end: @Sendable () -> Void

    init(
        _ live: LiveConsole,
        _ kinds: Set<Kind>,
        follower: (any LineFollower)?,
        end: @escaping @Sendable () -> Void
    ) {
        self.live = live
        self.kinds = kinds
        self.follower = follower
        self.end = end
    }

    deinit { end() }

    /// Takes the new events.
    func take() throws -> [ServerEvent] {
        try state.withLock { state in
            var events: [ServerEvent] = []
            if kinds.contains(.problems), let (version, problems) = live.problems(since: state.version) {
                state.version = version
                events.append(ServerEvent("problems", data: try WebReply.encode(problems)))
            }
            if kinds.contains(.status), case let version = live.signsVersion, state.status != version {
                state.status = version
                events.append(ServerEvent("status", data: try WebReply.encode(Status(version: version))))
            }
            if kinds.contains(.caught), case let newest = live.newestCaught(), state.caught != newest {
                state.caught = newest
                events.append(ServerEvent("caught", data: try WebReply.encode(Caught(newest: newest))))
            }
            events += try lines()
            let second = live.clock.now().seconds
            if kinds.contains(.counts), state.counted != second {
                state.counted = second
                // Last, so that a client that looks in knows that it has all; with the place, so that it misses no line.
                let id = follower.map { "\($0.place)" }
                events.append(ServerEvent("counts", data: try WebReply.encode(live.series.newest), id: id))
            }
            return events
        }
    }

    private func lines() throws -> [ServerEvent] {
        guard let batch = follower?.take() else { return [] }
        let id = "\(batch.place)"
        var events: [ServerEvent] = []
        if batch.skipped > 0 {
            events.append(ServerEvent("skipped", data: try WebReply.encode(Skipped(count: batch.skipped)), id: id))
        }
        if !batch.items.isEmpty || batch.more > 0 {
            let lines = Lines(items: batch.items, more: batch.more)
            events.append(ServerEvent("lines", data: try WebReply.encode(lines), id: id))
        }
        return events
    }
}
