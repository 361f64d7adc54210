import CoreMetrics
import HeraldMailbox
import HeraldModel
import HeraldTrust
import HeraldWire
import Logging

/// Performs the requests that connections make of the registry, and brings the answers back to their event loops.
///
/// Callbacks are the style from an event loop to the store and back. Most requests are a CONNECT of a known device or a
/// session record, and those take no task. A few requests wait for several writes of the store, or open many tokens.
/// ``wait(_:_:)`` runs them in a task, and is the only bridge between the two styles.
final class RegistryRequests: Sendable {
    /// The connection that makes a request.
    struct Client: Sendable {
        let link: MQTTConnectionLink
        let environment: PushEnvironment
        /// Nil until the device is admitted.
        let device: DeviceNumber?
        /// The fence of the admission; 0 before.
        let fence: UInt64

        var id: DeviceID { link.identity.id }
    }

    private let services: CourierServices
    private let apps: AppRequests
    private let takeovers: Takeovers
    private let metrics: CourierMetrics
    private let logger: Logger
    private let queue = PerDeviceQueue()
    /// The devices on their way in; nil for a service of one node, whose store is in the process.
    private let arrivals: Arrivals?

    init(
        _ services: CourierServices,
        _ takeovers: Takeovers,
        _ metrics: CourierMetrics,
        limits: CourierLimits,
        logger: Logger
    ) {
        self.services = services
        self.takeovers = takeovers
        self.metrics = metrics
        self.logger = logger
        apps = AppRequests(services: services, limits: limits, metrics: metrics, logger: logger)
        let postOffice = services.postOffice
        arrivals = services.registry.shared.map { _ in Arrivals(limits.configuration) { postOffice.readCount } }
    }

    /// The devices that wait for their turn to arrive.
    var waitingArrivals: Int { arrivals?.waitingCount ?? 0 }

    func run() async {
        await withTaskGroup { group in
            if let arrivals { group.addTask { await arrivals.run() } }
            await queue.run()
            group.cancelAll()
        }
    }

    func finish() {
        queue.finish()
    }

    /// Performs a request; the answer goes to the connection's event loop.
    func perform(_ request: RegistryRequest, for client: Client) {
        switch request {
        case .admit:
            guard let arrivals else { return admit(client) {} }
            arrivals.add(
                Arrivals.Arrival(
                    begin: {
                        // Nobody waits for it any more.
                        guard !client.link.isGone else { return arrivals.ended() }
                        self.admit(client) { arrivals.ended() }
                    },
                    refuse: {
                        self.metrics.arrivalsRefused.increment()
                        client.link.complete(.busy)
                    }
                )
            )
        case .begin(let record, let read):
            arrivals?.continues()
            let ended: @Sendable () -> Void = { [arrivals] in arrivals?.ended() }
            begin(client, whenDone: ended) { client, done in
                guard let device = client.device else { return done(.success(.failed)) }
                let fence = client.fence
                self.services.registry.beginSession(record, replacing: read, of: device, fence: fence) { result in
                    switch result {
                    case .failure(let error): done(.failure(error))
                    case .success(.stored): done(.success(.done))
                    case .success(.changed(let present)):
                        let arrival = Registry.Arrival(number: device, record: present, fence: fence)
                        self.admit(arrival, client, done)
                    }
                }
            }
        case .keep(let record):
            begin(client) { client, done in
                guard let device = client.device else { return done(.success(.failed)) }
                self.services.registry.setSession(record, for: device, fence: client.fence) { done($0.map { .done }) }
            }
        case .register(let apps):
            wait(client) { try await self.apps.register(apps, $0) }
        case .unregister(let apps):
            wait(client) { .unregistered(try await self.apps.unregister(apps, $0)) }
        case .findChannels(let filters):
            begin(client) { client, done in
                let find: @Sendable () -> Set<CourierFilter> = { Set(filters.filter { self.apps.exists($0, client) }) }
                let found = find()
                guard let shared = self.services.registry.shared, found.count < Set(filters).count else {
                    return done(.success(.foundChannels(found)))
                }
                // Another node may have made the others just now.
                shared.catchUp(.channels) { done($0.map { .foundChannels(find()) }) }
            }
        case .setEnabled(let isEnabled, let app):
            wait(client) { try await self.apps.setEnabled(isEnabled, app, $0) }
        case .setSavingPower(let isSaving):
            wait(client) { client in
                guard let device = client.device else { return .failed }
                try await self.services.registry.setSavingPower(isSaving, for: device, fence: client.fence)
                return .done
            }
        case .examine(let tokens, let topic, let environment):
            wait(client) { client in
                let examined = tokens.map { self.apps.examine($0, for: topic, in: environment, client) }
                guard let device = client.device, let shared = self.services.registry.shared else {
                    return .examined(examined)
                }
                let part = SharedPart.registrations(of: device)
                guard shared.isBehind(part) || !examined.allSatisfy(\.isGood) else { return .examined(examined) }
                // Another node may have made the key or the registration of a token just now.
                if examined.contains(.foreign) { try await shared.catchUp(.trust) }
                try await shared.catchUp(part)
                return .examined(tokens.map { self.apps.examine($0, for: topic, in: environment, client) })
            }
        }
    }

    /// Releases the claim of a connection that is gone: detaches it, and stores what becomes of its session.
    func release(_ claim: DeviceClaim, _ link: MQTTConnectionLink, unacknowledged: [UnacknowledgedNotification]) {
        let id = link.identity.id
        if case .keep = claim.session { takeovers.remember(unacknowledged, of: claim.device) }
        services.postOffice.detach(claim.device, fence: claim.fence)
        queue.add(id) { done in
            guard self.takeovers.closed(id, fence: claim.fence) else { return done() }
            let record: SessionRecord?
            switch claim.session {
            case .unchanged: return done()
            case .keep(let kept): record = kept
            case .drop: record = nil
            }
            self.services.registry.setSession(record, for: claim.device, fence: claim.fence) {
                [logger = self.logger] result in
                // A newer connection, at another node, has stored its own.
                if case .failure(let error) = result, !(error is NewerConnection) {
                    // The record of the connected session stays: the session lasts longer than it should, nothing is lost.
                    logger.warning(
                        "could not store a device's session",
                        metadata: ["device": "\(id)", "error": "\(error)"]
                    )
                }
                done()
            }
        }
    }

    // MARK: - The two styles

    private typealias Done = @Sendable (Result<RegistryAnswer, any Error>) -> Void

    private func begin(
        _ client: Client,
        whenDone: @escaping @Sendable () -> Void = {},
        _ body: @escaping @Sendable (Client, @escaping Done) -> Void
    ) {
        queue.add(client.id) { done in
            let finish: Done = { result in
                self.answer(result, client)
                whenDone()
                done()
            }
            guard !self.isOvertaken(client) else { return finish(.failure(NewerConnection())) }
            body(client, finish)
        }
    }

    private func wait(
        _ client: Client,
        whenDone: @escaping @Sendable () -> Void = {},
        _ body: @escaping @Sendable (Client) async throws -> RegistryAnswer
    ) {
        queue.addTask(client.id) {
            do {
                guard !self.isOvertaken(client) else { throw NewerConnection() }
                self.answer(.success(try await body(client)), client)
            } catch {
                self.answer(.failure(error), client)
            }
            whenDone()
        }
    }

    /// Whether the device has a newer connection here: its state is not the older one's to change any more.
    private func isOvertaken(_ client: Client) -> Bool {
        client.device != nil && takeovers.isOvertaken(client.id, fence: client.fence)
    }

    private func answer(_ result: Result<RegistryAnswer, any Error>, _ client: Client) {
        switch result {
        case .success(let answer): client.link.complete(answer)
        case .failure(is NewerConnection):
            client.link.dismiss(.takenOver)
            client.link.complete(.failed)
        case .failure(is ClientGone): client.link.complete(.failed)
        case .failure(let error):
            logger.error(
                "could not perform a device's request",
                metadata: ["device": "\(client.id)", "error": "\(error)"]
            )
            client.link.complete(.failed)
        }
    }

    // MARK: - CONNECT

    /// Admits a device, and calls `whenDone` once.
    private func admit(_ client: Client, whenDone: @escaping @Sendable () -> Void) {
        let registry = services.registry
        guard registry.number(of: client.id) != nil else {
            return wait(client, whenDone: whenDone) { client in
                guard self.permits(client) else { return .tooManyTakeovers }
                let arrival = try await registry.arrive(client.id, client.link.ask)
                return try await withCheckedThrowingContinuation { continuation in
                    self.claimed(arrival, client) { continuation.resume(with: $0) }
                }
            }
        }
        begin(client, whenDone: whenDone) { client, done in
            guard self.permits(client) else { return done(.success(.tooManyTakeovers)) }
            registry.arriveAgain(client.id, client.link.ask) { result in
                switch result {
                case .failure(let error): done(.failure(error))
                case .success(let arrival): self.claimed(arrival, client, done)
                }
            }
        }
    }

    /// Admits a device that this connection has claimed; if that fails, gives the claim back.
    private func claimed(_ arrival: Registry.Arrival, _ client: Client, _ done: @escaping Done) {
        takeovers.admitted(client.id, fence: arrival.fence)
        admit(arrival, client) { result in
            if case .failure = result {
                _ = self.takeovers.closed(client.id, fence: arrival.fence)
                self.services.postOffice.detach(arrival.number, fence: arrival.fence)
            }
            done(result)
        }
    }

    private func permits(_ client: Client) -> Bool {
        takeovers.permits(client.link.identity, isHeldElsewhere: services.registry.isHeldElsewhere(client.id))
    }

    /// Admits a device with what the store has of it.
    ///
    /// Another node of a cluster may have made a channel of its session just now.
    private func admit(_ arrival: Registry.Arrival, _ client: Client, _ done: @escaping Done) {
        let channels = (arrival.record.session?.subscriptions ?? [:]).keys.lazy.compactMap { CourierFilter($0) }
            .filter { ChannelFilter($0) != nil }
        guard let shared = services.registry.shared, !channels.allSatisfy({ apps.exists($0, client) }) else {
            return admitWithApps(arrival, client, done)
        }
        shared.catchUp(.channels) { result in
            if case .failure(let error) = result { return done(.failure(error)) }
            self.admitWithApps(arrival, client, done)
        }
    }

    /// Admits a device; another node of a cluster may have registered an app of its session just now.
    private func admitWithApps(_ arrival: Registry.Arrival, _ client: Client, _ done: @escaping Done) {
        let (device, hasAllApps) = admission(arrival, client)
        guard let shared = services.registry.shared, !hasAllApps else { return done(.success(.admitted(device))) }
        shared.catchUp(.registrations(of: arrival.number)) { result in
            done(result.map { .admitted(self.admission(arrival, client).device) })
        }
    }

    private func admission(
        _ arrival: Registry.Arrival,
        _ client: Client
    ) -> (device: AdmittedDevice, hasAllApps: Bool) {
        // Read before the tokens are sealed: a token under a newer key is only sent once more.
        let tokenKey = services.tokens.newestKey
        // A session that has the tokens of this key is sent none, and sealing takes some microseconds each.
        let wantsTokens = arrival.record.session?.tokenKey != tokenKey
        let session = arrival.record.session
        let topics = Set((session?.subscriptions ?? [:]).keys.compactMap { CourierFilter($0)?.app })
        let apps = topics.compactMap { topic -> RegisteredApp? in
            let environment = session?.environments?[topic.name] ?? client.environment
            let app = App(topic: topic, environment: environment)
            guard let number = services.registry.number(of: app) else { return nil }
            let slot = Slot(device: arrival.number, app: number)
            guard let registration = services.postOffice.registration(slot), registration.isLive else { return nil }
            return self.apps.registered(registration, as: topic, sealsToken: wantsTokens)
        }
        let device = AdmittedDevice(
            device: arrival.number,
            fence: arrival.fence,
            record: arrival.record,
            apps: apps,
            tokenKey: tokenKey
        )
        return (device, apps.count == topics.count)
    }
}
