import HeraldMailbox
import HeraldModel
import HeraldTestSupport
import HeraldTrust
import Synchronization

@testable import HeraldCourier

/// Registry, post office and token seal in a few dictionaries; records the calls.
final class FakeServices: DeviceRegistry, DevicePostOffice, DeviceTokens, ServiceFacts {
    var announcement: SignedAnnouncement? { nil }
    var shared: (any SharedState)? { nil }
    var readCount: Int { 0 }
    struct Finished: Hashable {
        let app: AppNumber
        let delivery: UInt32
        let result: DeliveryResult
    }

    struct State {
        var sessions: [DeviceNumber: SessionRecord] = [:]
        var apps: [App: AppNumber] = [:]
        var registrations: [Slot: Registration] = [:]
        var savesPower: Bool?
        var link: (any DeviceLink)?
        var fence: UInt64 = 0
        var open: [AppNumber: UInt8] = [:]
        var finished: [Finished] = []
        var detached: [UInt64] = []
        var unknownTopics: Set<Topic> = []
    }

    let state = Mutex(State())
    let channels: ChannelService

    init(channels: ChannelService = ChannelScene().service) {
        self.channels = channels
    }

    var services: CourierServices {
        CourierServices(
            registry: self,
            postOffice: self,
            channels: channels,
            tokens: self,
            trust: self
        )
    }

    var link: (any DeviceLink)? { state.withLock { $0.link } }
    var detached: [UInt64] { state.withLock { $0.detached } }
    var finished: [Finished] { state.withLock { $0.finished } }

    func isHeldElsewhere(_ id: DeviceID) -> Bool { false }

    func arrive(_ id: DeviceID, _ client: @escaping ClientCheck) async throws -> Registry.Arrival {
        newArrival()
    }

    func number(of device: DeviceID) -> DeviceNumber? {
        state.withLock { $0.fence > 0 ? SessionBench.device : nil }
    }

    func arriveAgain(
        _ id: DeviceID,
        _ client: @escaping ClientCheck,
        _ done: @escaping @Sendable (Result<Registry.Arrival, any Error>) -> Void
    ) {
        client { [self] silence in done(silence == nil ? .failure(ClientGone()) : .success(newArrival())) }
    }

    private func newArrival() -> Registry.Arrival {
        state.withLock { state in
            state.fence += 1
            let record = DeviceRecord(session: state.sessions[SessionBench.device])
            return Registry.Arrival(number: SessionBench.device, record: record, fence: state.fence)
        }
    }

    func register(
        _ apps: [App],
        on device: DeviceNumber,
        fence: UInt64
    ) async -> [App: Result<Registration, any Error>] {
        state.withLock { state in
            apps.reduce(into: [:]) { results, app in
                let number = state.apps[app] ?? AppNumber(UInt32(state.apps.count + 1))
                state.apps[app] = number
                let slot = Slot(device: device, app: number)
                let registration =
                    state.registrations[slot]
                    ?? Registration(slot: slot, generation: 1, isLive: true, registered: WallTime(milliseconds: 0))
                state.registrations[slot] = registration
                results[app] = .success(registration)
            }
        }
    }

    func unregister(_ slots: Set<Slot>, fence: UInt64) async -> [Slot: Result<Bool, any Error>] {
        state.withLock { state in
            slots.reduce(into: [:]) { $0[$1] = .success(state.registrations.removeValue(forKey: $1) != nil) }
        }
    }

    func setEnabled(_ enabled: Bool, for slot: Slot, fence: UInt64) async throws {
        state.withLock { $0.registrations[slot]?.isEnabled = enabled }
    }

    func setSavingPower(_ saving: Bool, for device: DeviceNumber, fence: UInt64) async throws {}

    func beginSession(
        _ session: SessionRecord?,
        replacing read: DeviceRecord,
        of device: DeviceNumber,
        fence: UInt64,
        _ done: @escaping @Sendable (Result<SessionBeginning, any Error>) -> Void
    ) {
        setSession(session, for: device, fence: fence) { done($0.map { .stored }) }
    }

    func setSession(
        _ session: SessionRecord?,
        for device: DeviceNumber,
        fence: UInt64,
        _ done: @escaping @Sendable (Result<Void, any Error>) -> Void
    ) {
        state.withLock { $0.sessions[device] = session }
        done(.success(()))
    }

    var newestKey: UInt32 { 1 }

    func app(_ number: AppNumber) -> App? {
        state.withLock { state in state.apps.first { $0.value == number }?.key }
    }

    func number(of app: App) -> AppNumber? {
        state.withLock { $0.apps[app] }
    }

    func registration(_ slot: Slot) -> Registration? {
        state.withLock { $0.registrations[slot] }
    }

    func isKnown(_ topic: Topic) -> Bool {
        state.withLock { !$0.unknownTopics.contains(topic) }
    }

    func seal(_ contents: TokenContents) -> DeviceToken {
        SessionBench.token(contents.slot.app, generation: contents.generation, device: contents.slot.device)
    }

    func open(_ token: DeviceToken) -> TokenContents? {
        guard token.words.0 == 0xAA else { return nil }
        return TokenContents(
            slot: Slot(device: DeviceNumber(token.words.1), app: AppNumber(UInt32(truncatingIfNeeded: token.words.2))),
            generation: UInt32(truncatingIfNeeded: token.words.3)
        )
    }

    func attach(_ device: DeviceNumber, link: any DeviceLink, isSavingPower: Bool, fence: UInt64) {
        let old = state.withLock { state in
            defer { state.link = link }
            return state.link
        }
        old?.dismiss(.takenOver)
    }

    func detach(_ device: DeviceNumber, fence: UInt64) {
        state.withLock { $0.detached.append(fence) }
    }

    func open(_ apps: [AppSubscription], on device: DeviceNumber, fence: UInt64) {
        state.withLock { state in
            for app in apps { state.open[app.number] = app.qualityOfService }
        }
    }

    func close(_ slot: Slot, fence: UInt64, awaitsToken: Bool) {
        state.withLock { $0.open[slot.app] = nil }
    }

    func finished(_ slot: Slot, fence: UInt64, delivery: DeliveryNumber, result: DeliveryResult) {
        state.withLock { $0.finished.append(Finished(app: slot.app, delivery: delivery.index, result: result)) }
    }

    func setSavingPower(_ saving: Bool, device: DeviceNumber, fence: UInt64) {
        state.withLock { $0.savesPower = saving }
    }
}

/// A clock that tests set.
final class FakeClock: WallClock {
    private let time = Mutex(WallTime(milliseconds: 1_700_000_000_000))

    private let certain = Mutex<WallTime?>(nil)

    func now() -> WallTime { time.withLock { $0 } }
    func certainTime() -> WallTime {
        let now = now()
        return certain.withLock { min($0 ?? now, now) }
    }

    /// Jumps, and holds the certain time.
    func jump(by duration: Duration) {
        let before = certainTime()
        certain.withLock { $0 = before }
        advance(by: duration)
    }

    /// Takes the present time for certain.
    func accept() { certain.withLock { $0 = nil } }

    func advance(by duration: Duration) { time.withLock { $0 = $0 + duration } }
}
