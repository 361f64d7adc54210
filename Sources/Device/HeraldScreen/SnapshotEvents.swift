import HeraldPhone
import HeraldWeb
import Hummingbird
import Synchronization

/// The device's snapshots for one page, as a stream of events.
///
/// A page that reads slowly skips snapshots: only the newest is kept.
enum SnapshotEvents {
    static func stream(
        of view: any DeviceView,
        keepAlive: Duration,
        clock: any Clock<Duration>,
        permit: ConcurrencyLimit.Permit
    ) -> EventStream {
        let newest = Newest()
        return EventStream(
            keepAlive: keepAlive,
            clock: clock,
            watch: { signal in
                for await snapshot in await view.snapshots() {
                    newest.put(snapshot)
                    signal()
                }
            },
            take: { try newest.take().map { [try event($0)] } ?? [] },
            end: { permit.release() }
        )
    }

    static func event(_ snapshot: PhoneSnapshot) throws -> ServerEvent {
        ServerEvent("device", data: try WebReply.encode(snapshot))
    }

    /// Keeps the newest unsent snapshot.
    private final class Newest: Sendable {
        private let snapshot = Mutex<PhoneSnapshot?>(nil)

        func put(_ newest: PhoneSnapshot) {
            snapshot.withLock { $0 = newest }
        }

        func take() -> PhoneSnapshot? {
            snapshot.withLock { $0.take() }
        }
    }
}
