import NIOCore

/// Spreads the TLS handshakes of one event loop: a few, then everything else that the loop has to do, then a few more.
///
/// The first answer of a handshake is some 0.5 ms of computing. Without a limit a burst of clients would stop all
/// connections of the loop for as long as it takes. The networks of those that wait take turns, so a crowd from one
/// address delays nobody else by more than a few handshakes.
final class HandshakeQueue {
    /// Handshakes that begin before the loop does something else.
    static let batch = 4
    /// The loop looks at its sockets only when nothing is due; a pause guarantees that.
    static let pause = TimeAmount.microseconds(250)

    private let eventLoop: any EventLoop
    /// Return whether they had work to do: the connection may be gone.
    private var waiting: [ClientNetwork: CircularBuffer<() -> Bool>] = [:]
    /// The networks of ``waiting`` in the order of their turns.
    private var turns: CircularBuffer<ClientNetwork> = []
    private var room = HandshakeQueue.batch
    private var isTimerSet = false

    init(_ eventLoop: any EventLoop) {
        self.eventLoop = eventLoop
    }

    /// Begins a handshake at once if there is room.
    /// - Returns: false if it has to wait for its turn; then `later` is called.
    func begins(of network: @autoclosure () -> ClientNetwork, later: @escaping () -> Bool) -> Bool {
        defer { setTimer() }
        guard room > 0, turns.isEmpty else {
            let network = network()
            if waiting[network] == nil { turns.append(network) }
            waiting[network, default: []].append(later)
            return false
        }
        room -= 1
        return true
    }

    private func setTimer() {
        guard !isTimerSet else { return }
        isTimerSet = true
        eventLoop.assumeIsolated().scheduleTask(in: Self.pause) { self.resume() }
    }

    private func resume() {
        isTimerSet = false
        room = Self.batch
        while room > 0, let network = turns.popFirst() {
            if beginNext(of: network) { room -= 1 }
            if waiting[network]?.isEmpty ?? true {
                waiting[network] = nil
            } else {
                turns.append(network)
            }
        }
        if room < Self.batch { setTimer() }
    }

    /// - Returns: Whether a handshake of the network has begun; if not, none waits.
    private func beginNext(of network: ClientNetwork) -> Bool {
        while let next = waiting[network]?.popFirst() {
            if next() { return true }
        }
        return false
    }
}
