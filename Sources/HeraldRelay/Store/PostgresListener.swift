import Foundation
import HeraldModel
import Synchronization

/// Tells when rows come into a queue of PostgreSQL: the tables' triggers notify, and this listens.
///
/// It has a connection of its own. One that is lost is made again, with pauses; what was missed meanwhile is made up for by telling once.
enum PostgresListener {
    static func changes(_ address: String) -> AsyncStream<Void> {
        let (stream, continuation) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
        let state = WatchState()
        continuation.onTermination = { _ in state.end() }
        continuation.yield()
        let thread = Thread { listen(address, state) { continuation.yield() } }
        thread.name = "herald-relay-listen"
        thread.start()
        return stream
    }

    private static func listen(_ address: String, _ state: WatchState, _ tell: () -> Void) {
        var policy = RetryPolicy()
        policy.longestPause = .seconds(30)
        var failures = 0
        while !state.isEnded {
            do {
                let connection = try PostgresConnection(address)
                try connection.command("LISTEN push_queue")
                failures = 0
                tell()
                while !state.isEnded {
                    var polled = pollfd(fd: connection.socket, events: Int16(POLLIN), revents: 0)
                    guard poll(&polled, 1, 1000) > 0 else { continue }
                    guard let found = connection.takeNotifications() else { break }
                    if found { tell() }
                }
            } catch {
                // The other connection's failure is in the log.
            }
            guard !state.isEnded else { return }
            failures += 1
            let pause = policy.pause(after: failures, share: Double.random(in: 0...1))
            usleep(UInt32(clamping: pause.wholeMilliseconds * 1000))
        }
    }
}
