package import HeraldActivation
package import HeraldConsole
import HeraldCourier
package import HeraldGateway
package import HeraldListener
package import HeraldMailbox
package import HeraldModel
package import HeraldTrust
package import Logging

/// The configuration of a service: the configurations of its parts, and what belongs to no part alone.
///
/// The initial values here and in the parts are the only defaults. ``ServerSettings`` has a row for each value that
/// operators can set.
package struct ServerConfiguration: SettingTarget {
    /// The environments in which a success has the header `apns-unique-id`.
    package enum UniqueID: String, CaseIterable, Sendable {
        /// As APNs.
        case sandbox
        case always
    }

    /// The answers of the provider API that have an explanation in words.
    package enum Explain: String, CaseIterable, Sendable {
        /// Only answers to requests with `herald-explain: 1`.
        case asked
        /// Every answer, for libraries that cannot ask.
        case always
    }

    /// Whether peers are refused while their authority has no revocation list.
    enum RevocationLists: String, CaseIterable, Sendable {
        case required
        /// For authorities of users' own that publish none.
        case optional
    }

    /// The environments of a provider certificate that has neither of Apple's environment extensions.
    enum UnmarkedCertificates: String, CaseIterable, Sendable {
        case refused
        case production
        case sandbox
        case both
    }

    package static let defaults = ServerConfiguration()
    private static let loopback = "127.0.0.1"

    package var data = DataFolder.defaultPath
    /// Names of the server certificate, beside those of this machine.
    package var hostnames: [String] = []
    /// The addresses that devices are told, in order of preference; a port of 0 is the listener's.
    package var deviceAddresses: [ServiceEndpoint] = []
    package var cluster = ClusterConfiguration()
    package var demo = false
    /// The port of the demo device's screen; 0 for a free one.
    var demoScreenPort = 0
    package var logFormat = HeraldLogHandler.Format.text
    package var logLevel = Logger.Level.info
    package var clock = ClockSetting.system
    /// Drills that begin with the service.
    package var drills: [DrillRequest] = []
    /// Whether a payload may ask for a drill.
    var allowsPayloadDrills = false
    /// Whether it may even where everybody can reach the service.
    var allowsPayloadDrillsInPublic = false
    /// The requests whose payloads are caught from the start on; nil for all with ``demo``, else none.
    package var catchScope: CatchScope?
    /// Whether payloads may be caught even where everybody can reach the service.
    var catchesInPublic = false
    package var consoleHost = loopback
    package var consolePort = 2190
    package var consoleTLS = ConsoleTLS.auto
    package var consoleMode = ConsoleMode.full
    /// The address by which people open the console through a proxy; empty: that of its port.
    var consoleURL = ""
    /// The networks of proxies before the console whose fields `X-Forwarded-…` count.
    var consoleProxies: [AddressRange] = []
    /// Whether senders start and stop drills over the console.
    var letsSendersDrill = false
    /// Connections of the console's port, and as many of its socket.
    var consoleConnections = 128
    /// How long the service finishes accepted work when it stops.
    var gracePeriod = Duration.seconds(10) {
        didSet { limitShutdown() }
    }

    package var gateway = GatewayConfiguration(host: loopback, port: 2197, environment: .production)
    package var binary = BinaryConfiguration(host: loopback, port: 2195, environment: .production)
    package var feedback = FeedbackConfiguration(host: loopback, port: 2196, environment: .production)
    var courier = CourierConfiguration()
    package var deviceListener = ListenerConfiguration(name: "devices", host: loopback, port: 5223)
    package var activation = ActivationConfiguration(host: loopback, port: 2191)
    var postOffice = PostOfficeConfiguration()
    var registry = RegistryConfiguration()
    package var channels = ChannelServiceConfiguration()
    package var revocations = RevocationPolicy()
    /// The environments of a provider certificate that names none.
    var unmarkedEnvironments: Set<PushEnvironment> = []

    package init() {
        deviceListener.portOption = "--device-port"
        deviceListener.speech = "MQTT"
        limitShutdown()
    }

    /// The gateway adds a second of notice, and one to close the remaining connections.
    private mutating func limitShutdown() {
        gateway.timeouts.shutdown = max(.zero, gracePeriod - .seconds(2))
        binary.shutdown = gateway.timeouts.shutdown
    }
}

// MARK: - Settings that concern several parts

extension ServerConfiguration {
    /// All listeners with TLS: all except the console's.
    package var listeners: [WritableKeyPath<ServerConfiguration, ListenerConfiguration>] {
        [\.gateway.listener, \.binary.listener, \.feedback.listener, \.deviceListener, \.activation.listener]
    }

    /// The address of every listener except the console's.
    package var host: String {
        get { gateway.listener.host }
        set { for path in listeners { self[keyPath: path].host = newValue } }
    }

    /// The addresses that clients of TLS connect to.
    package var listening: [String] { isConsoleOverTLS ? [host, consoleHost] : [host] }

    /// The addresses that devices are told, with their ports.
    var announcedAddresses: [ServiceEndpoint] {
        deviceAddresses.map { address in
            ServiceEndpoint(
                host: address.host,
                port: address.port > 0 ? address.port : deviceListener.port,
                activation: address.activation > 0 ? address.activation : activation.listener.port
            )
        }
    }

    /// The networks of load balancers whose connections begin with a PROXY protocol header.
    var proxies: [AddressRange] {
        get { gateway.listener.proxies }
        set { for path in listeners { self[keyPath: path].proxies = newValue } }
    }

    /// The maximum age of a connection whose client is not authenticated.
    var unknownAge: Duration {
        get { gateway.listener.unknownAge }
        set {
            for path in listeners { self[keyPath: path].unknownAge = newValue }
            // Nobody is known there.
            activation.connectionLifetime = newValue
        }
    }

    /// The percentage of a listener's connections that one network may have without authentication.
    var unknownShare: Int {
        get { gateway.listener.unknownShare }
        set { for path in listeners { self[keyPath: path].unknownShare = newValue } }
    }

    /// The environment of a client whose server name does not contain `sandbox` or `development`.
    package var environment: PushEnvironment {
        get { gateway.environment }
        set {
            gateway.environment = newValue
            binary.environment = newValue
            feedback.environment = newValue
            courier.environment = newValue
        }
    }

    var longestStorage: Duration {
        get { postOffice.longestStorage }
        set {
            postOffice.longestStorage = newValue
            courier.longestSession = newValue
        }
    }

    var channelsPerApp: Int {
        get { channels.channelsPerApp }
        set {
            channels.channelsPerApp = newValue
            channels.channelsInAll = max(ChannelServiceConfiguration().channelsInAll, newValue)
        }
    }

    var appsPerDevice: Int {
        get { registry.appsPerDevice }
        set {
            registry.appsPerDevice = newValue
            registry.newNames = max(RegistryConfiguration().newNames, 2 * newValue)
            registry.newNamesPerDay = max(RegistryConfiguration().newNamesPerDay, newValue)
            courier.subscriptionsPerSession = max(CourierConfiguration().subscriptionsPerSession, newValue)
        }
    }

    var providerIdle: Duration {
        get { gateway.timeouts.idle }
        set {
            gateway.timeouts.idle = newValue
            binary.idle = newValue
        }
    }

    package var uniqueID: UniqueID {
        get { gateway.rules.alwaysSendsUniqueID ? .always : .sandbox }
        set { gateway.rules.alwaysSendsUniqueID = newValue == .always }
    }

    package var explain: Explain {
        get { gateway.rules.alwaysExplains ? .always : .asked }
        set { gateway.rules.alwaysExplains = newValue == .always }
    }

    var revocationLists: RevocationLists {
        get { revocations.mayBeMissing ? .optional : .required }
        set { revocations.mayBeMissing = newValue == .optional }
    }

    var unmarkedCertificates: UnmarkedCertificates {
        get {
            switch (unmarkedEnvironments.contains(.production), unmarkedEnvironments.contains(.sandbox)) {
            case (false, false): .refused
            case (true, false): .production
            case (false, true): .sandbox
            case (true, true): .both
            }
        }
        set {
            switch newValue {
            case .refused: unmarkedEnvironments = []
            case .production: unmarkedEnvironments = [.production]
            case .sandbox: unmarkedEnvironments = [.sandbox]
            case .both: unmarkedEnvironments = Set(PushEnvironment.allCases)
            }
        }
    }
}

// MARK: - Reading

extension ServerConfiguration {
    /// Reads every setting and checks its value.
    /// - Throws: ``CommandError/Code/configuration`` for the first that is not allowed.
    package init(_ settings: Settings) throws {
        self.init()
        for row in ServerSettings.rows { try row.read(settings, &self) }
        try checkPayloadDrills(on: host)
        try checkCatch()
        try checkDeviceAddresses()
    }

    /// Refuses addresses for devices whose ports nobody knows before the service listens.
    /// - Throws: ``CommandError/Code/configuration``.
    private func checkDeviceAddresses() throws {
        guard announcedAddresses.contains(where: { $0.port == 0 || $0.activation == 0 }) else { return }
        throw CommandError(
            .configuration,
            "device-addresses needs ports: give device-port and activation-port another value than 0, or write each address "
                + "like push.example.com:5223:2191"
        )
    }

    /// The settings in which another configuration differs.
    package func changes(to other: ServerConfiguration) -> [Setting<ServerConfiguration>] {
        ServerSettings.rows.filter { $0.differs(self, other) }
    }

    /// Refuses payload drills on a public address unless `payload-drills-in-public` allows them.
    /// - Parameter host: The address of the provider API; on a reload the present one.
    /// - Throws: ``CommandError/Code/configuration``.
    func checkPayloadDrills(on host: String) throws {
        guard !allowsPayloadDrills || allowsPayloadDrillsInPublic || !ListenScope.isPublic(host) else {
            throw CommandError(
                .configuration,
                "payload-drills lets every provider choose the service's answers, and \(host) is a public address: "
                    + "choose a private one with --host, or add --payload-drills-in-public"
            )
        }
    }

    /// The scope of catching from the start on: all in a demo that not everybody can reach, unless the setting says otherwise.
    var catches: CatchScope {
        catchScope ?? (demo && (catchesInPublic || !ListenScope.isPublic(host)) ? .all : .off)
    }

    /// Refuses to catch payloads on a public address unless `catch-in-public` allows it.
    /// - Throws: ``CommandError/Code/configuration``.
    private func checkCatch() throws {
        guard catches == .off || catchesInPublic || !ListenScope.isPublic(host) else {
            throw CommandError(
                .configuration,
                "catch keeps payloads for everybody with a token of the console, and \(host) is a public address: choose a "
                    + "private one with --host, or add --catch-in-public"
            )
        }
    }
}
