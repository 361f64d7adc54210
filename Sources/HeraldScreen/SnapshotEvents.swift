import HeraldPhone
import HeraldWeb
import HummingbirdCore
import NIOCore
import ServiceLifecycle
import Synchronization

/// Sends the device's snapshots to one page as server-sent events (HTML standard, §9.2).
///
/// A page that reads slowly skips snapshots: only the newest is kept.
struct SnapshotEvents: Sendable {
    let view: any DeviceView
    let keepAlive: Duration
    let clock: any Clock<Duration>
    let permit: ConcurrencyLimit.Permit

    var body: ResponseBody {
        ResponseBody { writer in
            defer { permit.release() }
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
                    for await _ in inbox.signals {
                        try await writer.write(try SnapshotEvents.event(inbox.take()))
                    }
                }
            } onGracefulShutdown: {
                inbox.end()
            }
            try await writer.finish(nil)
        }
    }

    /// Encodes a snapshot; nil as a keep-alive comment.
    static func event(_ snapshot: PhoneSnapshot?) throws -> ByteBuffer {
        guard let snapshot else { return ByteBuffer(string: ": still here\n\n") }
        var event = ByteBuffer(string: "event: device\ndata: ")
        // This JSON has no line breaks, which would end the field of the event.
        event.writeBytes(try WebReply.encode(snapshot))
        event.writeString("\n\n")
        return event
    }
}

/// Keeps the newest unsent snapshot.
private final class Inbox: Sendable {
    private let snapshot = Mutex<PhoneSnapshot?>(nil)
    private let wake: AsyncStream<Void>.Continuation
    /// Signals that there is something to write; several signals may become one.
    let signals: AsyncStream<Void>

    init() {
        (signals, wake) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
    }

    func put(_ newest: PhoneSnapshot) {
        snapshot.withLock { $0 = newest }
        wake.yield()
    }

    /// Requests a keep-alive comment.
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
