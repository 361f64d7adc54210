import Dispatch
import HeraldMailbox
import HeraldModel
import Synchronization
import Testing

@testable import HeraldCluster

/// Catching up while another thread reports changes.
@Suite struct CatchUpThreadTests {
    /// Takes changes, and holds the thread that brings the first ones until it is told to go on.
    private final class SlowSink: RegistrySink {
        let isHeld = DispatchSemaphore(value: 0)
        let mayGoOn = DispatchSemaphore(value: 0)
        private let changes = Mutex<[RegistryChange]>([])

        var applied: [RegistryChange] { changes.withLock { $0 } }

        func apply(_ new: [RegistryChange]) {
            let isFirst = changes.withLock { changes in
                defer { changes += new }
                return changes.isEmpty
            }
            guard isFirst else { return }
            isHeld.signal()
            mayGoOn.wait()
        }
    }

    @Test func `what was caught up with has been reported, also if another thread reports at that moment`() async throws
    {
        let log = MemoryLog()
        let a = try await ClusterRegistry.loaded("a", from: log)
        let b = try await ClusterRegistry.loaded("b", from: log)
        let device = try await a.number(of: try #require(DeviceID("phone")))
        let app = App(topic: try #require(Topic("com.example.chat")), environment: .production)
        let slot = Slot(device: device, app: try await a.number(of: app, for: nil, at: WallTime(seconds: 1)))
        let sink = SlowSink()
        _ = b.snapshot(reports: true)
        b.reports.begin(sink)
        // A change of another stream, which another thread reports.
        let other = RegistryChange.device(try #require(DeviceID("tablet")), DeviceNumber(99))
        DispatchQueue(label: "another-thread").async {
            b.reports.add([other])
            b.reports.report()
        }
        await withCheckedContinuation { continuation in
            DispatchQueue.global().async {
                sink.isHeld.wait()
                continuation.resume()
            }
        }
        // The follower has the registration, and hands it to the thread that is held.
        let made = try await a.register(slot, at: WallTime(seconds: 2), fence: 0)
        let isCaughtUp = Mutex(false)
        let known: [RegistryChange] = await withCheckedContinuation { continuation in
            b.catchUp(b.streams(of: .registrations(of: device))) { _ in
                isCaughtUp.withLock { $0 = true }
                continuation.resume(returning: sink.applied)
            }
            #expect(!isCaughtUp.withLock { $0 })
            sink.mayGoOn.signal()
        }
        #expect(known == [other, .registration(made)])
    }
}
