import HeraldMailbox
import HeraldModel
import HeraldTrust
import HeraldWire
import Testing

@testable import HeraldCourier

/// A connection machine with a registry in a few dictionaries: packets go in, packets come out.
struct SessionBench {
    static let device = DeviceNumber(7)
    static let name = "device-7"

    var machine: MQTTConnectionMachine
    /// The registry: apps that are registered, with the generation of their token; those of another environment than the
    /// connection's stand under `other.<topic>`.
    var registered: [Topic: UInt32] = [:]
    var numbers: [Topic: AppNumber] = [:]
    var record = DeviceRecord()
    var disabled: Set<Topic> = []
    /// The existing channels, by their filters, and the open ones.
    var channels: Set<String> = []
    private(set) var openChannels: [String: UInt8] = [:]
    /// Requests that fail.
    var isRegistryDown = false
    var hasTooManyTakeovers = false
    /// The key under which tokens are sealed now.
    var tokenKey: UInt32 = 1
    /// Apps that are one too many.
    var tooMany: Set<Topic> = []
    /// Requests are kept instead of being answered.
    var isHolding = false
    var held: [RegistryRequest] = []
    var now = WallTime(milliseconds: 1_700_000_000_000)

    private(set) var requests: [RegistryRequest] = []
    private(set) var sent: [MQTTPacket] = []
    private(set) var tokens: [(app: AppNumber, token: DeviceToken, qualityOfService: UInt8)] = []
    private(set) var open: [AppNumber: UInt8] = [:]
    private(set) var terms: SessionTerms?
    private(set) var savesPower: Bool?
    private(set) var hasEnded = false
    /// Whether the device takes reason strings: then each failure has one.
    private var explains = false
    private(set) var released: [DeviceClaim] = []
    private(set) var faults: [ConnectionFault] = []
    private(set) var refusedTopics: [RefusedTopic] = []
    /// Reported numbers of apps whose tokens are missing.
    private(set) var missingTokens: [Int] = []
    /// All actions in their order, in words.
    private(set) var log: [String] = []

    init(
        environment: PushEnvironment = .production,
        configuration: CourierConfiguration = CourierConfiguration()
    ) throws {
        guard let id = DeviceID(SessionBench.name) else { throw MQTTError(.unspecifiedError, "no identifier") }
        machine = MQTTConnectionMachine(device: id, environment: environment, limits: CourierLimits(configuration))
    }

    static func topic(_ name: String) -> Topic {
        guard let topic = Topic(name) else { preconditionFailure("not a topic: \(name)") }
        return topic
    }

    static func connect(
        _ version: MQTTVersion = .v5,
        id: String = SessionBench.name,
        isClean: Bool = true,
        keepAlive: UInt16 = 60,
        will: MQTTWill? = nil,
        properties: MQTTProperties = []
    ) -> MQTTPacket {
        .connect(
            MQTTConnect(
                version: version,
                clientIdentifier: id,
                isClean: isClean,
                keepAlive: keepAlive,
                will: will,
                properties: properties
            )
        )
    }

    static func subscribe(
        _ filters: String...,
        id: UInt16 = 1,
        qualityOfService: MQTTQualityOfService = .atLeastOnce,
        properties: MQTTProperties = []
    ) -> MQTTPacket {
        subscribe(to: filters, id: id, qualityOfService: qualityOfService, properties: properties)
    }

    static func subscribe(
        to filters: [String],
        id: UInt16 = 1,
        qualityOfService: MQTTQualityOfService = .atLeastOnce,
        properties: MQTTProperties = []
    ) -> MQTTPacket {
        .subscribe(
            MQTTSubscribe(
                packetIdentifier: id,
                properties: properties,
                subscriptions: filters.map { MQTTSubscription(filter: $0, maximumQoS: qualityOfService) }
            )
        )
    }

    static func unsubscribe(_ filters: String..., id: UInt16 = 2, properties: MQTTProperties = []) -> MQTTPacket {
        unsubscribe(from: filters, id: id, properties: properties)
    }

    static func unsubscribe(from filters: [String], id: UInt16 = 2, properties: MQTTProperties = []) -> MQTTPacket {
        .unsubscribe(MQTTUnsubscribe(packetIdentifier: id, properties: properties, filters: filters))
    }

    static func publish(
        _ topic: String,
        _ payload: String,
        id: UInt16? = 3,
        isRetained: Bool = false,
        properties: MQTTProperties = []
    ) -> MQTTPacket {
        .publish(
            MQTTPublish(
                topic: topic,
                packetIdentifier: id,
                qualityOfService: id == nil ? .atMostOnce : .atLeastOnce,
                isRetained: isRetained,
                properties: properties,
                payload: Array(payload.utf8)
            )
        )
    }

    /// The bench after a CONNECT that is accepted.
    static func connected(
        _ version: MQTTVersion = .v5,
        isClean: Bool = true,
        properties: MQTTProperties = [],
        configuration: CourierConfiguration = CourierConfiguration()
    ) throws -> SessionBench {
        var bench = try SessionBench(configuration: configuration)
        bench.receive(connect(version, isClean: isClean, properties: properties))
        bench.forgetSent()
        return bench
    }

    func number(_ name: String) -> AppNumber? {
        numbers[SessionBench.topic(name)]
    }

    mutating func forgetSent() {
        sent = []
        tokens = []
        log = []
        requests = []
    }

    mutating func receive(_ packets: MQTTPacket...) {
        for packet in packets where machine.canReceive {
            if case .connect(let connect) = packet {
                explains = connect.version == .v5 && connect.properties.requestProblemInformation != 0
            }
            perform(machine.received(packet))
        }
    }

    mutating func fail(_ code: MQTTReasonCode, refusalVersion: MQTTVersion? = nil) {
        perform(machine.failed(MQTTError(code, "wrong"), refusalVersion: refusalVersion))
    }

    mutating func dismiss(_ reason: DismissalReason) {
        perform(machine.dismissed(reason))
    }

    mutating func endTokenGrace() {
        perform(machine.tokenGraceEnded())
    }

    mutating func fallSilent() {
        perform(machine.keepAliveTimedOut())
    }

    mutating func disconnect() {
        perform(machine.disconnected(now: now))
    }

    mutating func release() {
        let requests = held
        held = []
        isHolding = false
        for request in requests { perform(machine.completed(answer(request), now: now)) }
    }

    mutating func complete(_ result: RegistryAnswer) {
        perform(machine.completed(result, now: now))
    }

    private mutating func perform(_ actions: [ConnectionAction]) {
        for action in actions {
            switch action {
            case .request(let request):
                requests.append(request)
                if isHolding {
                    held.append(request)
                } else {
                    perform(machine.completed(answer(request), now: now))
                }
            case .attach(let new):
                terms = new
                log.append("attach")
            case .send(let packet):
                sent.append(packet)
                let isSilent = packet.explanation.isFailure && packet.explanation.reason == nil
                #expect(!explains || !isSilent, "a failure without a reason string: \(packet)")
                log.append("\(packet.kind)")
            case .sendToken(let app, let token, let qualityOfService):
                tokens.append((app, token, qualityOfService))
                log.append("token")
            case .announce(_, let version): log.append("announce after \(version)")
            case .noteAnnouncement(let version): log.append("has announcement \(version)")
            case .open(let app, let qualityOfService):
                open[app] = qualityOfService
                log.append("open")
            case .close(let app):
                open[app] = nil
                log.append("close")
            case .withhold(let app):
                open[app] = nil
                log.append("withhold")
            case .remove(let apps):
                for app in apps { open[app] = nil }
                log.append("remove")
            case .openChannel(let filter, let qualityOfService, let acknowledged):
                openChannels[filter.name] = qualityOfService
                log.append("channel after \(acknowledged)")
            case .closeChannels(let filters):
                for filter in filters { openChannels[filter.name] = nil }
                log.append("no channel")
            case .setSavingPower(let saving): savesPower = saving
            case .end:
                hasEnded = true
                log.append("end")
            case .release(let claim): released.append(claim)
            case .log(let fault): faults.append(fault)
            case .logRefusedTopic(let topic): refusedTopics.append(topic)
            case .reportMissingTokens(let apps): missingTokens.append(apps)
            }
        }
    }

    // The registry.

    mutating func register(_ name: String) {
        let topic = SessionBench.topic(name)
        if numbers[topic] == nil { numbers[topic] = AppNumber(UInt32(numbers.count + 1)) }
        if registered[topic] == nil { registered[topic] = 1 }
    }

    /// A token that names its app and generation.
    static func token(
        _ app: AppNumber,
        generation: UInt32 = 1,
        device: DeviceNumber = SessionBench.device
    ) -> DeviceToken {
        DeviceToken(words: (0xAA, device.value, UInt64(app.value), UInt64(generation)))
    }

    private func app(_ app: App) -> RegisteredApp? {
        let key = key(app)
        guard let number = numbers[key], let generation = registered[key] else { return nil }
        let token = SessionBench.token(number, generation: generation)
        return RegisteredApp(topic: app.topic, number: number, token: token)
    }

    /// The name of an app in the registry.
    private func key(_ app: App) -> Topic {
        app.environment == machine.environment ? app.topic : SessionBench.topic("other.\(app.topic)")
    }

    private func admitted() -> RegistryAnswer {
        let topics = Set((record.session?.subscriptions ?? [:]).keys.compactMap { CourierFilter($0)?.app })
        let apps = topics.compactMap { topic in
            let environment = record.session?.environments?[topic.name] ?? machine.environment
            return app(App(topic: topic, environment: environment))
        }
        return .admitted(
            AdmittedDevice(device: SessionBench.device, fence: 42, record: record, apps: apps, tokenKey: tokenKey)
        )
    }

    mutating func answer(_ request: RegistryRequest) -> RegistryAnswer {
        if hasTooManyTakeovers, request == .admit { return .tooManyTakeovers }
        guard !isRegistryDown else { return failure(request) }
        switch request {
        case .admit: return admitted()
        case .register(let apps):
            for app in apps where !tooMany.contains(app.topic) { register(key(app).name) }
            let refused = apps.filter { tooMany.contains($0.topic) }.map { ($0, RegistrationRefusal.tooManyNewNames) }
            return .registered(apps.map { app($0) }, refused: Dictionary(refused) { first, _ in first })
        case .unregister(let apps):
            return .unregistered(apps.map { registered.removeValue(forKey: key($0)) != nil })
        case .findChannels(let filters):
            return .foundChannels(Set(filters.filter { channels.contains($0.name) }))
        case .begin(let session, let read):
            guard read == record else {
                return admitted()
            }
            record.session = session
            return .done
        case .keep(let session):
            record.session = session
            return .done
        case .setEnabled(let isEnabled, let app):
            let topic = key(app)
            guard registered[topic] != nil else { return .notRegistered }
            if isEnabled { disabled.remove(topic) } else { disabled.insert(topic) }
            return .done
        case .setSavingPower(let saving):
            record.isSavingPower = saving
            return .done
        case .examine(let tokens, let topic, let environment):
            return .examined(tokens.map { examine($0, topic, environment) })
        }
    }

    private func failure(_ request: RegistryRequest) -> RegistryAnswer {
        switch request {
        case .register(let apps): .registered(apps.map { _ in nil })
        case .unregister(let apps): .unregistered(apps.map { _ in nil })
        default: .failed
        }
    }

    private func examine(_ token: DeviceToken, _ topic: Topic?, _ environment: PushEnvironment) -> PresentedToken {
        guard token.words.0 == 0xAA, token.words.1 == SessionBench.device.value else { return .foreign }
        let app = AppNumber(UInt32(truncatingIfNeeded: token.words.2))
        let wanted = topic.map { key(App(topic: $0, environment: environment)) }
        guard let found = numbers.first(where: { $0.value == app })?.key, wanted == nil || wanted == found,
            found.name.hasPrefix("other.") == (environment != machine.environment),
            registered[found].map({ UInt64($0) }) == token.words.3
        else { return .stale(app) }
        return .current(app)
    }
}

extension MQTTPacket {
    /// Whether the packet says that something failed, and its reason string.
    fileprivate var explanation: (isFailure: Bool, reason: String?) {
        switch self {
        case .connack(let packet): (packet.reasonCode.isFailure, packet.properties.reasonString)
        case .puback(let packet), .pubcomp(let packet): (packet.reasonCode.isFailure, packet.properties.reasonString)
        case .suback(let packet), .unsuback(let packet):
            (packet.reasonCodes.contains(where: \.isFailure), packet.properties.reasonString)
        case .disconnect(let packet): (packet.reasonCode.isFailure, packet.properties.reasonString)
        default: (false, nil)
        }
    }

    var connack: MQTTConnack? { if case .connack(let packet) = self { packet } else { nil } }
    var suback: [MQTTReasonCode]? { if case .suback(let packet) = self { packet.reasonCodes } else { nil } }
    var unsuback: [MQTTReasonCode]? { if case .unsuback(let packet) = self { packet.reasonCodes } else { nil } }
    var puback: MQTTReasonCode? { if case .puback(let packet) = self { packet.reasonCode } else { nil } }
    var disconnect: MQTTReasonCode? { if case .disconnect(let packet) = self { packet.reasonCode } else { nil } }
}
