import CoreMetrics
import HeraldMailbox
import HeraldModel
import HeraldTrust
import HeraldWire
import Logging
import Synchronization

/// Carries out what sessions ask of the registry, as errands, and brings the answers back to their event loops.
final class SessionClerk: Sendable {
    /// Who asks.
    struct Client: Sendable {
        let link: CourierLink
        let environment: PushEnvironment
        /// nil until the device is let in.
        let device: DeviceNumber?
    }

    let office: any DeviceOffice
    let limits: SessionLimits
    let clock: any WallClock
    let logger: Logger
    let table: ConnectionTable
    let metrics = CourierMetrics()
    private let errands = DeviceErrands()
    private let limiter: Mutex<TakeoverLimiter>

    init(office: any DeviceOffice, limits: SessionLimits, clock: any WallClock, logger: Logger) {
        self.office = office
        self.limits = limits
        self.clock = clock
        self.logger = logger
        table = ConnectionTable(remnantLimit: limits.configuration.rememberedDuplicates)
        limiter = Mutex(TakeoverLimiter(limit: limits.configuration.takeoversPerMinute))
    }

    func run() async {
        await errands.run()
    }

    func finish() {
        errands.finish()
    }

    /// Does what a session asks for; the answer is left for its loop.
    func perform(_ request: SessionRequest, for client: Client) {
        errands.add(client.link.identity.id, errand(request, for: client))
    }

    private func errand(_ request: SessionRequest, for client: Client) -> DeviceErrands.Errand {
        switch request {
        case .arrive:
            // What every device that comes back has done, and what is written then, takes no task.
            return office.isKnown(client.link.identity.id)
                ? .call { self.arriveAgain(client, $0) }
                : task(client) { try await self.arrive(client) }
        case .keep(let record):
            return .call { self.keep(record, client, $0) }
        case .register(let apps):
            return task(client) { await self.register(apps, client) }
        case .unregister(let apps):
            return task(client) { .unregistered(await self.unregister(apps, client)) }
        case .findChannels(let filters):
            return task(client) { .foundChannels(Set(filters.filter { self.exists($0, client) })) }
        case .setEnabled(let isEnabled, let app):
            return task(client) { try await self.setEnabled(isEnabled, app, client) }
        case .setSavingPower(let isSaving):
            return task(client) {
                guard let device = client.device else { return .failed }
                try await self.office.setSavingPower(isSaving, for: device)
                return .done
            }
        case .examine(let tokens, let topic, let environment):
            return task(client) { .examined(tokens.map { self.examine($0, for: topic, in: environment, client) }) }
        }
    }

    private func task(
        _ client: Client,
        _ body: @escaping @Sendable () async throws -> SessionResult
    ) -> DeviceErrands.Errand {
        .task {
            do {
                client.link.complete(try await body())
            } catch {
                self.failed(error, client)
            }
        }
    }

    private func arriveAgain(_ client: Client, _ isOver: @escaping @Sendable () -> Void) {
        guard isAdmitted(client) else {
            client.link.complete(.tooManyTakeovers)
            return isOver()
        }
        office.arriveAgain(client.link.identity.id) { [self] result in
            switch result {
            case .success(let arrival): client.link.complete(arrived(arrival, client))
            case .failure(let error): failed(error, client)
            }
            isOver()
        }
    }

    private func keep(_ record: SessionRecord?, _ client: Client, _ isOver: @escaping @Sendable () -> Void) {
        guard let device = client.device else {
            client.link.complete(.failed)
            return isOver()
        }
        office.setSession(record, for: device) { [self] result in
            switch result {
            case .success: client.link.complete(.done)
            case .failure(let error): failed(error, client)
            }
            isOver()
        }
    }

    private func setEnabled(_ isEnabled: Bool, _ app: App, _ client: Client) async throws -> SessionResult {
        guard let slot = slot(app, client), office.registration(slot)?.isLive == true else { return .notRegistered }
        try await office.setEnabled(isEnabled, for: slot)
        return .done
    }

    /// A connection of a device that was let in is gone.
    func depart(_ departure: SessionDeparture, _ link: CourierLink, remnants: [DeliveryWindow.Remnant]) {
        let id = link.identity.id
        if case .keep = departure.record { table.remember(remnants, of: departure.device) }
        office.detach(departure.device, fence: departure.fence)
        errands.add(
            id,
            .call { isOver in
                guard self.table.clearFence(departure.fence, of: id) else { return isOver() }
                switch departure.record {
                case .untouched: isOver()
                case .keep(let record): self.leave(record, of: departure.device, id, isOver)
                case .drop: self.leave(nil, of: departure.device, id, isOver)
                }
            }
        )
    }

    /// Stores what is left of a session whose connection is gone.
    private func leave(
        _ record: SessionRecord?,
        of device: DeviceNumber,
        _ id: DeviceID,
        _ isOver: @escaping @Sendable () -> Void
    ) {
        office.setSession(record, for: device) { [logger] result in
            if case .failure(let error) = result {
                // The record of the connected session stays: the session lasts longer than it should, nothing is lost.
                logger.warning(
                    "could not keep a device's session",
                    metadata: ["device": "\(id)", "error": "\(error)"]
                )
            }
            isOver()
        }
    }

    private func failed(_ error: any Error, _ client: Client) {
        log(error, client.link.identity.id)
        client.link.complete(.failed)
    }

    private func log(_ error: any Error, _ id: DeviceID) {
        logger.error("could not do what a device asked for", metadata: ["device": "\(id)", "error": "\(error)"])
    }

    private func exists(_ filter: CourierFilter, _ client: Client) -> Bool {
        guard let channel = ChannelFilter(filter) else { return false }
        return office.feed(channel.id, of: App(topic: channel.bundle, environment: client.environment)) != nil
    }

    private func arrive(_ client: Client) async throws -> SessionResult {
        guard isAdmitted(client) else { return .tooManyTakeovers }
        return arrived(try await office.arrive(client.link.identity.id), client)
    }

    /// Whether the device has not evicted its own connection too often.
    private func isAdmitted(_ client: Client) -> Bool {
        let id = client.link.identity.id
        guard table.isLetIn(id) else { return true }
        let decision = limiter.withLock { $0.takesOver(id, now: .now) }
        if case .refused(let isFirst) = decision {
            if isFirst {
                logger.warning(
                    "two connections with one device certificate evict each other; revoke it and enroll each device",
                    metadata: ["device": "\(id)", "serial": "\(client.link.identity.serial)"]
                )
            }
            return false
        }
        metrics.takeovers.increment()
        return true
    }

    private func arrived(_ arrival: Registry.Arrival, _ client: Client) -> SessionResult {
        table.setFence(arrival.fence, of: client.link.identity.id)
        // Asked for before the tokens are: one that is sealed under a newer key is only sent once more.
        let tokenKey = office.tokenKey
        // A session that has the tokens of this key is sent none, and sealing takes some microseconds each.
        let wantsTokens = arrival.record.session?.tokenKey != tokenKey
        let session = arrival.record.session
        let topics = Set((session?.subscriptions ?? [:]).keys.compactMap { CourierFilter($0)?.app })
        let apps = topics.compactMap { topic -> RegisteredApp? in
            let environment = session?.environments?[topic.name] ?? client.environment
            let app = App(topic: topic, environment: environment)
            guard let number = office.number(of: app) else { return nil }
            let slot = Slot(device: arrival.number, app: number)
            guard let registration = office.registration(slot), registration.isLive else { return nil }
            return registered(registration, number, topic, sealsToken: wantsTokens)
        }
        return .arrived(
            SessionArrival(
                device: arrival.number,
                fence: arrival.fence,
                record: arrival.record,
                apps: apps,
                tokenKey: tokenKey
            )
        )
    }

    private func register(_ wanted: [App], _ client: Client) async -> SessionResult {
        guard let device = client.device else { return .registered(wanted.map { _ in nil }) }
        let results = await office.register(wanted, on: device)
        var refused: Set<App> = []
        let apps = wanted.map { app -> RegisteredApp? in
            switch results[app] {
            case .success(let registration):
                return registered(registration, registration.slot.app, app.topic, sealsToken: true)
            case .failure(let refusal as RegistrationRefusal):
                refused.insert(app)
                metrics.registrationsRefused.increment()
                if client.link.reportsRegistrationRefusal() { log(refusal, client.link.identity.id) }
            case .failure(let error):
                logger.error("could not register an app", metadata: ["topic": "\(app.topic)", "error": "\(error)"])
            case nil:
                break
            }
            return nil
        }
        return .registered(apps, refused: refused)
    }

    private func log(_ refusal: RegistrationRefusal, _ device: DeviceID) {
        switch refusal {
        case .tooManyAppsOnDevice:
            logger.notice(
                "a device is refused another app: as many as apps-per-device allows are registered on it",
                metadata: ["device": "\(device)"]
            )
        case .tooManyApps:
            logger.warning(
                "a device is refused an app that no device had before: the service knows too many",
                metadata: ["device": "\(device)"]
            )
        }
    }

    /// The device token of a registration under the newest key; nil if the registration does not stand.
    func token(for slot: Slot) -> DeviceToken? {
        guard let registration = office.registration(slot), registration.isLive else { return nil }
        return office.token(for: registration)
    }

    private func registered(
        _ registration: Registration,
        _ number: AppNumber,
        _ topic: Topic,
        sealsToken: Bool
    ) -> RegisteredApp {
        RegisteredApp(
            // The registry's own copy of the name, so that sessions share it.
            topic: office.app(number)?.topic ?? topic,
            number: number,
            token: sealsToken ? office.token(for: registration) : nil
        )
    }

    private func unregister(_ apps: [App], _ client: Client) async -> [Bool?] {
        let slots = apps.map { slot($0, client) }
        let results = await office.unregister(Set(slots.compactMap(\.self)))
        return zip(apps, slots).map { app, slot in
            guard let slot else { return false }
            switch results[slot] {
            case .success(let stood):
                return stood
            case .failure(let error):
                logger.error("could not remove an app", metadata: ["topic": "\(app.topic)", "error": "\(error)"])
                return nil
            case nil:
                return nil
            }
        }
    }

    private func examine(
        _ token: DeviceToken,
        for topic: Topic?,
        in environment: PushEnvironment,
        _ client: Client
    ) -> PresentedToken {
        guard let contents = office.open(token), contents.slot.device == client.device else { return .foreign }
        let app = office.app(contents.slot.app)
        let isRightApp = app?.environment == environment && (topic == nil || app?.topic == topic)
        guard isRightApp, let registration = office.registration(contents.slot), registration.isLive,
            registration.generation == contents.generation
        else { return .stale(contents.slot.app) }
        return office.token(for: registration) == token ? .current(contents.slot.app) : .outdated(contents.slot.app)
    }

    /// The place of an app on the device; nil if no device ever registered such an app.
    private func slot(_ app: App, _ client: Client) -> Slot? {
        guard let device = client.device else { return nil }
        return office.number(of: app).map { Slot(device: device, app: $0) }
    }
}
