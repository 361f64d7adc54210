import Foundation
import HeraldModel

/// Reports new rows in PostgreSQL, through `LISTEN` on a connection of its own.
///
/// It replaces a lost connection with backoff, and reports a change after each reconnect. Behind a pooler, or on a server
/// without `LISTEN`, it reports a possible change every second instead.
struct PostgresListener: Sendable {
    /// Interval between two reports without `LISTEN`.
    private static let pollPause = Duration.seconds(1)

    let address: String
    let channel: String
    /// The other connection's losses: after a failover, the one of the listener leads to the old server.
    let losses: ConnectionLosses
    /// Called once if it cannot listen, with the reason.
    let note: @Sendable (String) -> Void

    func changes() -> AsyncStream<Void> {
        let (stream, continuation) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
        let state = StopFlag()
        continuation.onTermination = { _ in state.end() }
        continuation.yield()
        let thread = Thread { listen(state) { continuation.yield() } }
        thread.name = "herald-relay-listen"
        thread.start()
        return stream
    }

    private func listen(_ state: StopFlag, _ notify: () -> Void) {
        var backOff = RetryBackOff()
        backOff.longestPause = .seconds(30)
        var failures = 0
        while !state.isEnded {
            let known = losses.count
            do {
                let connection = try PostgresConnection(address)
                guard try connection.listen(channel) else {
                    note("the connection leads to a pooler, which does not pass on notifications")
                    return look(state, notify)
                }
                failures = 0
                notify()
                while !state.isEnded, losses.count == known {
                    var polled = pollfd(fd: connection.socket, events: Int16(POLLIN), revents: 0)
                    guard poll(&polled, 1, 1000) > 0 else { continue }
                    guard let found = connection.takeNotifications() else { break }
                    if found { notify() }
                }
            } catch let error as RelayStoreError where error.code == .failed {
                note(error.message)
                return look(state, notify)
            } catch {
                // The log has the failure of the other connection.
            }
            guard !state.isEnded else { return }
            failures += 1
            pause(backOff.pause(after: failures, share: Double.random(in: 0...1)))
        }
    }

    private func look(_ state: StopFlag, _ notify: () -> Void) {
        while !state.isEnded {
            notify()
            pause(Self.pollPause)
        }
    }

    private func pause(_ duration: Duration) {
        usleep(UInt32(clamping: duration.wholeMilliseconds * 1000))
    }
}
