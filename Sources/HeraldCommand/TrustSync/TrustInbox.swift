import HeraldCluster
import NIOCore
import Synchronization

/// The messages of the shared trust that have come and are not taken yet.
final class TrustInbox: Sendable {
    /// Yields when something has come.
    let arrivals: AsyncStream<Void>
    private let arrived: AsyncStream<Void>.Continuation
    private let entries = Mutex<[LogEntry]>([])

    init() {
        (arrivals, arrived) = AsyncStream.makeStream(bufferingPolicy: .bufferingNewest(1))
    }

    func add(_ new: [LogEntry]) {
        // Copies, since a message may keep all that was read from the connection together with it.
        let copies = new.map { entry in
            LogEntry(
                subject: entry.subject,
                sequence: entry.sequence,
                payload: ByteBuffer(bytes: entry.payload.readableBytesView),
                isSetAside: entry.isSetAside
            )
        }
        entries.withLock { $0 += copies }
        arrived.yield()
    }

    /// Removes the oldest messages, in the order of the log.
    func next(_ limit: Int) -> [LogEntry] {
        entries.withLock { entries in
            defer { entries.removeFirst(min(limit, entries.count)) }
            return Array(entries.prefix(limit))
        }
    }

    /// Puts messages back that could not be taken.
    func putBack(_ former: [LogEntry]) {
        entries.withLock { $0 = former + $0 }
        arrived.yield()
    }
}
