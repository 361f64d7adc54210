import HeraldWire
import NIOCore
import Synchronization

/// Tests a connection that is silent, and closes one that stays so (MQTT 5 §3.1.2.10: a PINGREQ when there is nothing
/// else to send; no PINGRESP within a reasonable time ends the connection).
final class Pulse: Sendable {
    private struct State {
        /// Whether anything came since the last test.
        var hasHeard = true
        var reason: String?
    }

    private let state = Mutex(State())

    /// Something came.
    func beat() {
        state.withLock { $0.hasHeard = true }
    }

    /// Why the connection was closed from this side; nil if it was not.
    var reason: String? {
        state.withLock { $0.reason }
    }

    /// Closes the connection unless the timer is cancelled before.
    func closeLater(_ channel: any Channel, after time: Duration) -> Scheduled<Void> {
        channel.eventLoop.scheduleTask(in: TimeAmount(time)) {
            self.close(channel, "the service did not answer in time")
        }
    }

    /// Sends a PINGREQ in each interval, until cancelled or until one is not answered.
    ///
    /// At three quarters of the keep alive, so that a late timer is not a broken promise.
    func watch(_ channel: any Channel, _ outbound: NIOAsyncChannelOutboundWriter<ByteBuffer>, keepAlive: Duration) async
    {
        guard keepAlive > .zero else { return }
        var ping = ByteBuffer()
        // An empty packet is not too long for MQTT.
        guard (try? MQTTPacketEncoder.encode(.pingreq, version: .v5, into: &ping)) != nil else { return }
        do {
            while true {
                try await Task.sleep(for: keepAlive * 3 / 4)
                let isAlive = state.withLock { state in
                    defer { state.hasHeard = false }
                    return state.hasHeard
                }
                guard isAlive else { return close(channel, "the service fell silent") }
                try await outbound.write(ping)
            }
        } catch {
            // Cancelled, or closed: whoever reads from the connection finds out.
        }
    }

    private func close(_ channel: any Channel, _ reason: String) {
        state.withLock { $0.reason = $0.reason ?? reason }
        channel.close(promise: nil)
    }
}
