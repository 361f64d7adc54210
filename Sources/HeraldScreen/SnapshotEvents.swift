import HeraldDevice
import HeraldWeb
import HummingbirdCore
import NIOCore
import ServiceLifecycle
import Synchronization

/// The device's snapshots as server-sent events (HTML standard, §9.2), for one page.
///
/// A page that reads slowly gets the newest snapshot and misses those between: nothing piles up.
struct SnapshotEvents: Sendable {
    let view: any DeviceView
    let keepAlive: Duration
    let clock: any Clock<Duration>
    let place: Places.Place

    var body: ResponseBody {
        ResponseBody { writer in
            defer { place.leave() }
            let inbox = Inbox()
            try await withGracefulShutdownHandler {
                try await withThrowingTaskGroup(of: Void.self) { group in
                    group.addTask {
                        for await snapshot in await view.snapshots() { inbox.put(snapshot) }
                        inbox.end()
                    }
                    group.addTask {
                        while true {
                            try await clock.sleep(for: keepAlive)
                            inbox.tick()
                        }
                    }
                    defer { group.cancelAll() }
                    for await _ in inbox.news {
                        try await writer.write(try SnapshotEvents.event(inbox.take()))
                    }
                }
            } onGracefulShutdown: {
                inbox.end()
            }
            try await writer.finish(nil)
        }
    }

    /// A snapshot, or where there is none a comment.
    static func event(_ snapshot: PhoneSnapshot?) throws -> ByteBuffer {
        guard let snapshot else { return ByteBuffer(string: ": still here\n\n") }
        var event = ByteBuffer(string: "event: device\ndata: ")
        // JSON as it is written here has no line break, which would end the event's field.
        event.writeBytes(try WebReply.encode(snapshot))
        event.writeString("\n\n")
        return event
    }
}

/// The newest snapshot that was not written yet.
private final class Inbox: Sendable {
    private let snapshot = Mutex<PhoneSnapshot?>(nil)
    private let wake: AsyncStream<Void>.Continuation
    /// Says that there is something to write; what was said twice is said once.
    let news: AsyncStream<Void>

    init() {
        (news, wake) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
    }

    func put(_ newest: PhoneSnapshot) {
        snapshot.withLock { $0 = newest }
        wake.yield()
    }

    /// Nothing has happened, which is worth a comment.
    func tick() {
        wake.yield()
    }

    func take() -> PhoneSnapshot? {
        snapshot.withLock { snapshot in
            defer { snapshot = nil }
            return snapshot
        }
    }

    func end() {
        wake.finish()
    }
}
