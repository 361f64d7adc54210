import HeraldWire
import NIOCore
import Synchronization

/// Notices a dead connection: pings when nothing was heard for half a keep alive, closes after one and a half.
///
/// Before the service has answered, the limit is the time that it has for that.
final class SilenceWatch: Sendable {
    private struct State {
        var heard: NIODeadline
        var limit: TimeAmount
        var pings = false
        var timer: Scheduled<Void>?
        var isOver = false
    }

    private let channel: any Channel
    private let state: Mutex<State>

    init(channel: any Channel, limit: Duration) {
        self.channel = channel
        state = Mutex(State(heard: .now(), limit: TimeAmount(limit)))
        schedule(in: TimeAmount(limit))
    }

    func heard() {
        state.withLock { $0.heard = .now() }
    }

    /// The connection stands; from now on it is kept alive.
    ///
    /// Zero switches it off (MQTT 5 §3.1.2.10).
    func keepAlive(_ interval: Duration) {
        state.withLock { state in
            state.timer?.cancel()
            state.pings = interval > .zero
            state.limit = TimeAmount(interval * 1.5)
        }
        if interval > .zero { schedule(in: TimeAmount(interval / 2)) }
    }

    func end() {
        state.withLock { state in
            state.isOver = true
            state.timer?.cancel()
        }
    }

    private func schedule(in wait: TimeAmount) {
        state.withLock { state in
            guard !state.isOver else { return }
            state.timer = channel.eventLoop.scheduleTask(in: wait) { self.look() }
        }
    }

    private func look() {
        let (silence, limit, pings) = state.withLock { (NIODeadline.now() - $0.heard, $0.limit, $0.pings) }
        guard silence < limit else { return channel.close(promise: nil) }
        if pings { channel.writeAndFlush(MQTTPacket.pingreq, promise: nil) }
        schedule(in: pings ? .nanoseconds(limit.nanoseconds / 3) : limit - silence)
    }
}
