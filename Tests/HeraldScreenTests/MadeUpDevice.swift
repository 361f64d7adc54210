import HeraldDevice
import HeraldModel
import Synchronization

@testable import HeraldPhone

/// A device that shows what a test says, and remembers what was done to it.
final class MadeUpDevice: DeviceView {
    private struct State {
        var snapshot = PhoneSnapshot(device: "phone", service: "localhost:5223", time: 1_700_000_000)
        var watchers: [Int: AsyncStream<PhoneSnapshot>.Continuation] = [:]
        var number = 0
        var deeds: [PhoneAction] = []
        var waits: [Duration] = []
    }

    private let state = Mutex(State())

    /// The actions that were performed.
    var deeds: [PhoneAction] { state.withLock { $0.deeds } }
    /// How long it was asked to wait for notifications.
    var waits: [Duration] { state.withLock { $0.waits } }
    /// How many watch it.
    var watchers: Int { state.withLock { $0.watchers.count } }

    /// Changes what it shows.
    func change(_ body: (inout PhoneSnapshot) -> Void) {
        state.withLock { state in
            body(&state.snapshot)
            for watcher in state.watchers.values { watcher.yield(state.snapshot) }
        }
    }

    func snapshot() async -> PhoneSnapshot { state.withLock { $0.snapshot } }

    func snapshots() async -> AsyncStream<PhoneSnapshot> {
        AsyncStream(bufferingPolicy: .bufferingNewest(1)) { continuation in
            let number = state.withLock { state in
                state.number += 1
                state.watchers[state.number] = continuation
                continuation.yield(state.snapshot)
                return state.number
            }
            continuation.onTermination = { _ in
                _ = self.state.withLock { $0.watchers.removeValue(forKey: number) }
            }
        }
    }

    func perform(_ action: PhoneAction) async throws {
        if case .tap(let id) = action, id != "n1" {
            throw DeviceError(.notPossible, "there is no notification \(id)")
        }
        state.withLock { $0.deeds.append(action) }
    }

    func displayRecord(named name: String, within time: Duration) async -> DisplayRecord? {
        state.withLock { $0.waits.append(time) }
        return name == MadeUpDevice.seen.description ? record : nil
    }

    func displayLog(after revision: Int, limit: Int) async -> DisplayLogChanges {
        let records = [record].compactMap { $0 }.suffix(revision < 4 ? limit : 0)
        return DisplayLogChanges(revision: 4, count: 1, records: Array(records))
    }

    private var record: DisplayRecord? {
        guard let topic = Topic("com.example.app") else { return nil }
        return DisplayRecord(
            apnsID: MadeUpDevice.seen.description,
            topic: topic,
            received: "2026-01-01T00:00:00.000Z",
            state: .background,
            badge: 1
        )
    }

    func file(_ kind: BundleFileKind, of topic: Topic, named name: String) async -> [UInt8]? {
        switch (kind, name) {
        case (.icon, _) where topic.description == "com.example.app":
            Array(#"<svg xmlns="http://www.w3.org/2000/svg"/>"#.utf8)
        case (.sound, "a ü.aiff"): Array("FORM".utf8)
        case (.image, "a ü.png"): [0x89, 0x50, 0x4E, 0x47]
        default: nil
        }
    }

    /// The one notification that it has seen.
    static let seen = NotificationID(high: 1, low: 2)
}
