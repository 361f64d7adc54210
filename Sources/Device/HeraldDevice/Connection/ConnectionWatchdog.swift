import HeraldWire
import NIOCore
import Synchronization

/// Tests one connection, and closes it when it is dead; ``KeepAliveMonitor`` decides.
final class ConnectionWatchdog: Sendable {
    private struct State {
        var monitor: KeepAliveMonitor?
        var reason: String?
    }

    private let channel: any Channel
    private let state = Mutex(State())

    init(_ channel: any Channel) {
        self.channel = channel
    }

    /// The reason for which this side closed the connection; nil if it did not.
    var reason: String? {
        state.withLock { $0.reason }
    }

    /// Bytes have arrived.
    func heard() {
        state.withLock { $0.monitor?.heard() }
    }

    func setBusy(_ isBusy: Bool) {
        state.withLock { $0.monitor?.setBusy(isBusy, at: .now) }
    }

    /// Tests the connection now, because it may be dead.
    func suspect() {
        look(isSuspect: true)
    }

    func close(_ reason: String) {
        state.withLock { $0.reason = $0.reason ?? reason }
        channel.close(promise: nil)
    }

    /// Watches until cancelled.
    func run(_ monitor: KeepAliveMonitor, pinged: () -> Void) async {
        state.withLock { $0.monitor = monitor }
        while let next = state.withLock({ $0.monitor?.nextLook }) {
            do { try await Task.sleep(until: next, clock: .continuous) } catch { return }
            if look(isSuspect: false) == .ping { pinged() }
        }
    }

    @discardableResult
    private func look(isSuspect: Bool) -> KeepAliveMonitor.Verdict? {
        let verdict = state.withLock { $0.monitor?.look(at: .now, isSuspect: isSuspect) }
        switch verdict {
        case .ping: ping()
        case .dead(let reason): close(reason)
        case .fine, nil: break
        }
        return verdict
    }

    /// Sends a PINGREQ past the connection's writer, which may be blocked by the peer under test.
    ///
    /// At most one is unanswered.
    private func ping() {
        var bytes = ByteBuffer()
        // Encoding a PINGREQ cannot fail.
        guard (try? MQTTPacketEncoder.encode(.pingreq, version: .v5, into: &bytes)) != nil else { return }
        channel.writeAndFlush(bytes, promise: nil)
    }
}
