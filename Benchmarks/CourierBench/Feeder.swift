import HeraldDoor
import HeraldMailbox
import HeraldModel
import LoadKit
import NIOCore

/// Posts notifications on an event loop, as a provider's door does: in bursts, each with a receipt.
final class Feeder: ReceiptDesk {
    struct Settings: Sendable {
        let devices: Int
        let topic: String
        let window: Int
        let rate: Int
        let payload: Int
    }

    private let postOffice: PostOffice
    private let registry: Registry
    private let loop: any EventLoop
    private let settings: Settings
    private let work: NIOLoopBoundBox<Work>
    private let settled: LoopInbox<Feeder>

    /// What happens on the loop.
    private struct Work {
        var registrations: [Registration] = []
        var next = 0
        var onTheWay = 0
        var began = MonotonicTime.now
        var generator = SystemRandomNumberGenerator()
    }

    init(postOffice: PostOffice, registry: Registry, loop: any EventLoop, settings: Settings) {
        self.postOffice = postOffice
        self.registry = registry
        self.loop = loop
        self.settings = settings
        let work = NIOLoopBoundBox.makeBoxSendingValue(Work(), eventLoop: loop)
        self.work = work
        settled = LoopInbox(on: loop) { feeders in
            work.value.onTheWay -= feeders.count
            feeders.first?.fillIfUnpaced()
        }
    }

    func settle(_ number: UInt64, _ outcome: ReceiptOutcome) {
        settled.leave(self)
    }

    /// Waits for the devices, then feeds them until cancelled.
    func run() async {
        while postOffice.connectedCount < settings.devices || !hasAll() {
            do { try await Task.sleep(for: .milliseconds(50)) } catch { return }
        }
        let registrations = found()
        try? await loop.submit {
            self.work.value.registrations = registrations
            self.work.value.began = .now
            if self.settings.rate == 0 { self.fill() } else { self.pace() }
        }.get()
        while !Task.isCancelled {
            do { try await Task.sleep(for: .seconds(3600)) } catch { return }
        }
    }

    private func hasAll() -> Bool { found().count == settings.devices }

    private func found() -> [Registration] {
        guard let topic = Topic(settings.topic),
            let app = registry.number(of: App(topic: topic, environment: .production))
        else { return [] }
        return (0..<settings.devices).compactMap { number in
            DeviceID("bench-\(number)").flatMap { registry.number(of: $0) }
                .flatMap { postOffice.registration(Slot(device: $0, app: app)) }
        }
    }

    private func fillIfUnpaced() {
        if settings.rate == 0 { fill() }
    }

    private func fill() {
        while work.value.onTheWay < settings.window { postOne() }
    }

    private func pace() {
        loop.scheduleRepeatedTask(initialDelay: .zero, delay: .milliseconds(1)) { _ in
            let due = Int(MonotonicTime.now.seconds(since: self.work.value.began) * Double(self.settings.rate))
            while self.work.value.next < due { self.postOne() }
        }
    }

    private func postOne() {
        let registration = work.value.registrations[work.value.next % work.value.registrations.count]
        work.value.next += 1
        let now = WallTime(seconds: 4_000_000_000)
        let notification = Notification(
            id: .random(using: &work.value.generator),
            uniqueID: .random(using: &work.value.generator),
            slot: registration.slot,
            received: now,
            storedUntil: now + .seconds(3600),
            priority: .immediate,
            pushType: .alert,
            collapseID: nil,
            payload: LoadPayload.make(bytes: settings.payload)
        )
        let letter = Letter(notification, receipt: Receipt(desk: self, number: 0))
        work.value.onTheWay += 1
        if postOffice.post(letter, generation: registration.generation) != .pending { work.value.onTheWay -= 1 }
    }
}
