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

    private struct State {
        /// The second whose counts were sent.
        var counted: Int64?
        /// The version of the problems that were sent.
        var version: Int?
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
            let second = live.clock.now().seconds
            if kinds.contains(.counts), state.counted != second {
                state.counted = second
                events.append(ServerEvent("counts", data: try WebReply.encode(live.series.newest)))
            }
            if kinds.contains(.problems), let (version, problems) = live.problems(since: state.version) {
                state.version = version
                events.append(ServerEvent("problems", data: try WebReply.encode(problems)))
            }
            if kinds.contains(.caught) {
                let newest = live.newestCaught()
                if let known = state.caught, known != newest {
                    events.append(ServerEvent("caught", data: try WebReply.encode(Caught(newest: newest))))
                }
                state.caught = newest
            }
            guard let batch = follower?.take() else { return events }
            let id = "\(batch.place)"
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
}
