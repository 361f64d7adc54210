import HeraldWire
import NIOCore
import Synchronization

/// Watches over one connection: tests it, and closes it when it is dead.
///
/// What it does, ``Pulse`` decides.
final class LineWatch: Sendable {
    private struct State {
        var pulse: Pulse?
        var reason: String?
    }

    private let channel: any Channel
    private let state = Mutex(State())

    init(_ channel: any Channel) {
        self.channel = channel
    }

    /// Why the connection was closed from this side; nil if it was not.
    var reason: String? {
        state.withLock { $0.reason }
    }

    /// Something came.
    func heard() {
        state.withLock { $0.pulse?.heard() }
    }

    func setBusy(_ isBusy: Bool) {
        state.withLock { $0.pulse?.setBusy(isBusy, at: .now) }
    }

    /// Tests the connection now, since it may be dead.
    func suspect() {
        look(isSuspect: true)
    }

    /// Closes the connection.
    func close(_ reason: String) {
        state.withLock { $0.reason = $0.reason ?? reason }
        channel.close(promise: nil)
    }

    /// Watches until cancelled.
    /// - Parameters:
    ///   - pulse: What decides from now on.
    ///   - pinged: Called with each test that is sent.
    func run(_ pulse: Pulse, pinged: () -> Void) async {
        state.withLock { $0.pulse = pulse }
        while let next = state.withLock({ $0.pulse?.nextLook }) {
            do { try await Task.sleep(until: next, clock: .continuous) } catch { return }
            if look(isSuspect: false) == .ping { pinged() }
        }
    }

    @discardableResult
    private func look(isSuspect: Bool) -> Pulse.Verdict? {
        let verdict = state.withLock { $0.pulse?.look(at: .now, isSuspect: isSuspect) }
        switch verdict {
        case .ping: ping()
        case .dead(let reason): close(reason)
        case .fine, nil: break
        }
        return verdict
    }

    /// Past the connection's own writer, which may be waiting for the very peer that is tested; one is unanswered at most.
    private func ping() {
        var bytes = ByteBuffer()
        // An empty packet is not too long for MQTT.
        guard (try? MQTTPacketEncoder.encode(.pingreq, version: .v5, into: &bytes)) != nil else { return }
        channel.writeAndFlush(bytes, promise: nil)
    }
}
