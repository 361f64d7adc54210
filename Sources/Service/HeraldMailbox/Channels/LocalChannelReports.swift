package import HeraldModel
import Synchronization

/// Numbers the broadcasts of an engine of one process, and reports to its sink in order.
package final class LocalChannelReports: Sendable {
    private struct State {
        var lastNumber: UInt64 = 0
        weak var sink: (any ChannelSink)?
    }

    private let state = Mutex(State())

    package init() {}

    /// Reports all channels to a sink, and everything else from then on.
    package func begin(_ sink: any ChannelSink, with channels: [StoredChannel]) {
        state.withLock { state in
            state.lastNumber = channels.compactMap(\.newest?.number).reduce(state.lastNumber) { max($0, $1) }
            state.sink = sink
            sink.loaded(channels)
        }
    }

    package func created(_ channel: BroadcastChannel) {
        state.withLock { $0.sink?.created(StoredChannel(channel: channel, newest: nil)) }
    }

    package func deleted(_ id: ChannelID) {
        state.withLock { $0.sink?.deleted(id) }
    }

    /// Numbers a broadcast and reports it.
    ///
    /// The number is greater than every other, also from before a restart, because numbers follow the clock.
    package func publish(_ broadcast: Broadcast, at moment: WallTime) -> Broadcast {
        state.withLock { state in
            state.lastNumber = max(state.lastNumber + 1, Broadcast.firstNumber(at: moment))
            let numbered = broadcast.numbered(state.lastNumber)
            state.sink?.received(numbered, isDurable: false)
            return numbered
        }
    }

    package func settled(_ broadcast: Broadcast, isStored: Bool) {
        state.withLock { $0.sink?.settled(broadcast, isStored: isStored) }
    }
}

extension Broadcast {
    /// The broadcast with the number that the store gave it.
    package func numbered(_ number: UInt64) -> Broadcast {
        Broadcast(
            channel: channel,
            app: app,
            number: number,
            id: id,
            uniqueID: uniqueID,
            received: received,
            storedUntil: storedUntil,
            priority: priority,
            payload: payload
        )
    }
}
