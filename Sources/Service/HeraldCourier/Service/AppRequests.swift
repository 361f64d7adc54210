import CoreMetrics
import HeraldMailbox
import HeraldModel
import HeraldWire
import Logging

/// Performs the requests of SUBSCRIBE, UNSUBSCRIBE and PUBLISH.
struct AppRequests: Sendable {
    typealias Client = RegistryRequests.Client

    let services: CourierServices
    let limits: CourierLimits
    let metrics: CourierMetrics
    let logger: Logger

    /// - Throws: ``NewerConnection``.
    func register(_ wanted: [App], _ client: Client) async throws -> RegistryAnswer {
        guard let device = client.device else { return .registered(wanted.map { _ in nil }) }
        var allowed = limits.deviceTopics == .any ? wanted : wanted.filter { mayRegister($0, client) }
        if allowed.count < wanted.count, let shared = services.registry.shared {
            // Another node may have made a credential for the topic just now, or the registration.
            do {
                try await shared.catchUp(.trust)
                try await shared.catchUp(.registrations(of: device))
            } catch {
                return .registered(wanted.map { _ in nil })
            }
            allowed = wanted.filter { mayRegister($0, client) }
        }
        var results = await services.registry.register(allowed, on: device, fence: client.fence)
        try throwIfOvertaken(results.values)
        for app in wanted where results[app] == nil && !allowed.contains(app) {
            results[app] = .failure(RegistrationRefusal.unknownTopic)
        }
        var refused: [App: RegistrationRefusal] = [:]
        let apps = wanted.map { app -> RegisteredApp? in
            switch results[app] {
            case .success(let registration):
                return registered(registration, as: app.topic, sealsToken: true)
            case .failure(let refusal as RegistrationRefusal):
                refused[app] = refusal
                metrics.registrationsRefused.increment()
                if client.link.reportsRegistrationRefusal() { log(refusal, of: app.topic, client.id) }
            case .failure(let error):
                logger.error("could not register an app", metadata: ["topic": "\(app.topic)", "error": "\(error)"])
            case nil:
                break
            }
            return nil
        }
        return .registered(apps, refused: refused)
    }

    /// Whether the device may register an app while topics must be known; a registration that is there stays.
    private func mayRegister(_ app: App, _ client: Client) -> Bool {
        services.trust.isKnown(app.topic)
            || slot(app, client).flatMap { services.postOffice.registration($0) }?.isLive == true
    }

    private func log(_ refusal: RegistrationRefusal, of topic: Topic, _ device: DeviceID) {
        switch refusal {
        case .unknownTopic:
            logger.notice(
                "app refused: no credential names its topic, and device-topics asks for that",
                metadata: ["device": "\(device)", "topic": "\(topic)"]
            )
        case .tooManyAppsOnDevice:
            logger.notice(
                "app refused: the device has as many apps as apps-per-device allows",
                metadata: ["device": "\(device)"]
            )
        case .tooManyNewNames, .tooManyApps:
            // The registry's log names who used up the names.
            break
        }
    }

    func registered(_ registration: Registration, as topic: Topic, sealsToken: Bool) -> RegisteredApp {
        let number = registration.slot.app
        return RegisteredApp(
            // The registry's own copy of the name, so that sessions share it.
            topic: services.registry.app(number)?.topic ?? topic,
            number: number,
            token: sealsToken ? services.tokens.token(for: registration) : nil
        )
    }

    /// - Throws: ``NewerConnection``.
    func unregister(_ apps: [App], _ client: Client) async throws -> [Bool?] {
        var slots = apps.map { slot($0, client) }
        if slots.contains(nil), let shared = services.registry.shared {
            // Another node may have made the app just now.
            do { try await shared.catchUp(.apps) } catch { return apps.map { _ in nil } }
            slots = apps.map { slot($0, client) }
        }
        let results = await services.registry.unregister(Set(slots.compactMap(\.self)), fence: client.fence)
        try throwIfOvertaken(results.values)
        return zip(apps, slots).map { app, slot in
            guard let slot else { return false }
            switch results[slot] {
            case .success(let wasRegistered):
                return wasRegistered
            case .failure(let error):
                logger.error("could not remove an app", metadata: ["topic": "\(app.topic)", "error": "\(error)"])
                return nil
            case nil:
                return nil
            }
        }
    }

    /// A connection that the registry takes for an older one ends as a whole, not app by app.
    private func throwIfOvertaken<Value>(_ results: some Sequence<Result<Value, any Error>>) throws {
        for case .failure(let error as NewerConnection) in results { throw error }
    }

    func exists(_ filter: CourierFilter, _ client: Client) -> Bool {
        guard let channel = ChannelFilter(filter) else { return false }
        let app = App(topic: channel.bundle, environment: client.environment)
        return services.channels.feed(channel.id, of: app) != nil
    }

    func setEnabled(_ isEnabled: Bool, _ app: App, _ client: Client) async throws -> RegistryAnswer {
        if liveSlot(app, client) == nil, let device = client.device {
            try await services.registry.shared?.catchUp(.registrations(of: device))
        }
        guard let slot = liveSlot(app, client) else { return .notRegistered }
        try await services.registry.setEnabled(isEnabled, for: slot, fence: client.fence)
        return .done
    }

    func examine(
        _ token: DeviceToken,
        for topic: Topic?,
        in environment: PushEnvironment,
        _ client: Client
    ) -> PresentedToken {
        guard let contents = services.tokens.open(token), contents.slot.device == client.device else { return .foreign }
        let number = contents.slot.app
        let app = services.registry.app(number)
        let isRightApp = app?.environment == environment && (topic == nil || app?.topic == topic)
        guard isRightApp, let registration = services.postOffice.registration(contents.slot), registration.isLive,
            registration.generation == contents.generation
        else { return .stale(number) }
        return services.tokens.token(for: registration) == token ? .current(number) : .outdated(number)
    }

    /// The slot of an app that is registered on the device.
    private func liveSlot(_ app: App, _ client: Client) -> Slot? {
        slot(app, client).flatMap { services.postOffice.registration($0)?.isLive == true ? $0 : nil }
    }

    /// The slot of an app on the device; nil if no device ever registered the app.
    private func slot(_ app: App, _ client: Client) -> Slot? {
        guard let device = client.device else { return nil }
        return services.registry.number(of: app).map { Slot(device: device, app: $0) }
    }
}
