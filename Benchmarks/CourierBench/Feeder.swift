import HeraldMailbox
import HeraldModel
import HeraldWire
import LoadKit
import NIOCore

/// Posts notifications on an event loop, as a provider's listener does: in bursts, each with a completion.
final class Feeder: CompletionHandler {
    struct Settings: Sendable {
        let topic: String
        let window: Int
        let payload: Int
    }

    private let postOffice: PostOffice
    private let registry: Registry
    private let loop: any EventLoop
    private let settings: Settings
    private let work: NIOLoopBoundBox<Work>
    private let settled: LoopInbox<Feeder>

    /// The registrations and counters of one event loop.
    private struct Work {
        var registrations: [Registration] = []
        var next = 0
        var onTheWay = 0
        var pace = Pace.resting
        var ticks: RepeatedTask?
        var generator = Identifiers()
    }

    /// Numbers that look random (SplitMix64), for identifiers: the system's generator would take four system calls for
    /// each notification.
    private struct Identifiers: RandomNumberGenerator {
        private var state = UInt64.random(in: .min ... .max)

        mutating func next() -> UInt64 {
            state &+= 0x9E37_79B9_7F4A_7C15
            var word = state
            word = (word ^ word >> 30) &* 0xBF58_476D_1CE4_E5B9
            word = (word ^ word >> 27) &* 0x94D0_49BB_1331_11EB
            return word ^ word >> 31
        }
    }

    private enum Pace {
        case resting
        case asFastAsTheWindowAllows
        case perSecond(Int, since: MonotonicTime, posted: Int)
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
            feeders.first?.fill()
        }
    }

    func settle(_ number: UInt64, _ outcome: CompletionOutcome) {
        settled.add(self)
    }

    /// Feeds the registered ones of these devices (bench-<n>) from now on; as fast as the window allows if `rate` is 0.
    /// - Returns: How many there are; with none nothing is fed.
    func feed(_ devices: Int, rate: Int) async throws -> Int {
        let registrations = registrations(of: devices)
        try await loop.submit {
            self.rest()
            guard !registrations.isEmpty else { return }
            self.work.value.registrations = registrations
            if rate == 0 {
                self.work.value.pace = .asFastAsTheWindowAllows
                self.fill()
            } else {
                self.work.value.pace = .perSecond(rate, since: .now, posted: 0)
                self.work.value.ticks = self.loop.scheduleRepeatedTask(
                    initialDelay: .zero,
                    delay: .milliseconds(1)
                ) { _ in self.keepPace() }
            }
        }.get()
        return registrations.count
    }

    func stop() async throws {
        try await loop.submit { self.rest() }.get()
    }

    private func rest() {
        work.value.ticks?.cancel()
        work.value.ticks = nil
        work.value.pace = .resting
    }

    private func registrations(of devices: Int) -> [Registration] {
        guard let topic = Topic(settings.topic),
            let app = registry.number(of: App(topic: topic, environment: .production))
        else { return [] }
        return (0..<devices).compactMap { number in
            DeviceID("bench-\(number)").flatMap { registry.number(of: $0) }
                .flatMap { postOffice.registration(Slot(device: $0, app: app)) }
        }
    }

    private func fill() {
        guard case .asFastAsTheWindowAllows = work.value.pace else { return }
        while work.value.onTheWay < settings.window { postOne() }
    }

    private func keepPace() {
        guard case .perSecond(let rate, let since, var posted) = work.value.pace else { return }
        let due = Int(MonotonicTime.now.seconds(since: since) * Double(rate))
        while posted < due {
            postOne()
            posted += 1
        }
        work.value.pace = .perSecond(rate, since: since, posted: posted)
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
        let envelope = Envelope(
            notification,
            generation: registration.generation,
            completion: Completion(handler: self, number: 0)
        )
        work.value.onTheWay += 1
        if postOffice.post(envelope) != .pending { work.value.onTheWay -= 1 }
    }
}
