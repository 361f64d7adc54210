import Foundation
import HeraldModel
import Synchronization

/// Reports new rows in PostgreSQL, through `LISTEN` on a connection of its own.
///
/// It replaces a lost connection with backoff, and reports a change after each reconnect.
enum PostgresListener {
    static func changes(_ address: String) -> AsyncStream<Void> {
        let (stream, continuation) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
        let state = StopFlag()
        continuation.onTermination = { _ in state.end() }
        continuation.yield()
        let thread = Thread { listen(address, state) { continuation.yield() } }
        thread.name = "herald-relay-listen"
        thread.start()
        return stream
    }

    private static func listen(_ address: String, _ state: StopFlag, _ notify: () -> Void) {
        var backOff = RetryBackOff()
        backOff.longestPause = .seconds(30)
        var failures = 0
        while !state.isEnded {
            do {
                let connection = try PostgresConnection(address)
                try connection.command("LISTEN push_queue")
                failures = 0
                notify()
                while !state.isEnded {
                    var polled = pollfd(fd: connection.socket, events: Int16(POLLIN), revents: 0)
                    guard poll(&polled, 1, 1000) > 0 else { continue }
                    guard let found = connection.takeNotifications() else { break }
                    if found { notify() }
                }
            } catch {
                // The log has the failure of the other connection.
            }
            guard !state.isEnded else { return }
            failures += 1
            let pause = backOff.pause(after: failures, share: Double.random(in: 0...1))
            usleep(UInt32(clamping: pause.wholeMilliseconds * 1000))
        }
    }
}
