import HeraldConsole
import HeraldGateway
import HeraldModel
import Logging

/// All that `herald serve` can be told, checked.
struct ServerConfiguration: Hashable, Sendable {
    /// Which engine keeps notifications and registrations.
    enum Store: Hashable, Sendable {
        /// A file in the data folder.
        case sqlite
    }

    /// In which environments a success carries `apns-unique-id`.
    enum UniqueID: String, CaseIterable, Sendable {
        /// As APNs does.
        case sandbox
        case always
    }

    /// Whether there must be a revocation list for peers to be let in.
    enum RevocationLists: String, CaseIterable, Sendable {
        case required
        /// For authorities of users' own that publish none.
        case optional
    }

    /// The environments of a provider certificate that has neither of Apple's marks.
    enum UnmarkedCertificates: String, CaseIterable, Sendable {
        case refused
        case production
        case sandbox
        case both
    }

    var data = DataFolder.defaultPath
    /// Names of the server certificate, beside those of this machine.
    var hostnames: [String] = []
    /// The address on which all doors but the console's listen.
    var host = "127.0.0.1"
    var consoleHost = "127.0.0.1"
    /// The environment of a client that asks for no name with `sandbox` or `development` in it.
    var environment = PushEnvironment.production
    var apiPort = 2197
    var binaryPort = 2195
    var feedbackPort = 2196
    var devicePort = 5223
    var activationPort = 2191
    /// How long a certificate is good that a device gets at the activation door.
    var deviceCertificateLifetime = Duration.seconds(365 * 86_400)
    var consolePort = 2190
    var store = Store.sqlite
    var demo = false
    var logFormat = HeraldLogHandler.Format.text
    var logLevel = Logger.Level.info
    var clock = ClockSetting.system
    /// How long a notification is stored at most; 30 days are what APNs stores.
    var longestStorage = Duration.seconds(30 * 86_400)
    /// How long the journal is kept.
    var journalAge = Duration.seconds(7 * 86_400)
    /// How large the journal may grow, in bytes.
    var journalBytes = 512 << 20
    /// How many background notifications one app may have on one device at once, and each hour after that; 0: no limit.
    var backgroundBurst = 3
    var backgroundPerHour = 3
    /// Topics that are owed one background notification in 24 hours while the device saves power.
    var newsstandTopics: Set<Topic> = []
    /// How many notifications one device token may be sent at once, and each second after that; 0: no limit.
    var tokenBurst = 10_000
    var tokenRate = 1000
    /// How much memory notifications may take, in bytes.
    var notificationBytes = 256 << 20
    var uniqueID = UniqueID.sandbox
    /// Whether a payload that is not a JSON object is accepted, as APNs does, and then is undeliverable.
    var acceptsNonJSON = false
    /// How long a revocation list still counts after its successor was due.
    var revocationGrace = Duration.zero
    var revocationLists = RevocationLists.required
    var unmarkedCertificates = UnmarkedCertificates.refused
    /// For which apps there are broadcast channels.
    var broadcastApps = BroadcastApps.all
    /// How many channels an app may have in one environment.
    var channelLimit = 10_000
    /// How many apps may be registered on a device at a time.
    var appsPerDevice = 500
    /// The longest payload at the binary interface, in bytes: 2,048 since iOS 8, 256 before.
    var binaryPayloadBytes = 2048
    /// Notifications of one binary connection that may be in hand at one time.
    var binaryInHand = 1000
    /// The most dead registrations that one connection to the feedback service is told of.
    var feedbackRecords = 100_000
    /// The longest keep alive that a device may ask for.
    var longestKeepAlive = Duration.seconds(1800)
    /// How long the service finishes what it accepted when it is told to stop.
    var gracePeriod = Duration.seconds(10)
    /// How long a provider's connection may be silent.
    var providerIdle = Duration.seconds(75 * 60)
    /// Drills that begin with the service.
    var drills: [DrillRequest] = []
    /// Whether a payload may ask for a drill.
    var allowsPayloadDrills = false
    /// Whether it may where everybody can reach the service.
    var allowsPayloadDrillsInPublic = false
}

extension ServerConfiguration {
    /// Reads every key and checks its value.
    /// - Throws: ``CommandError/Code/configuration`` for the first that cannot be.
    init(_ settings: Settings) throws {
        self.init()
        data = try settings.text(.data) ?? data
        guard !data.isEmpty else { throw SettingKey.data.refusal("", "a folder") }
        hostnames = try settings.texts(.hostname) ?? hostnames
        for name in hostnames where !ServerConfiguration.isHostname(name) {
            throw SettingKey.hostname.refusal(name, "a host name or an address, without a port")
        }
        host = try settings.address(.host) ?? host
        consoleHost = try settings.address(.consoleHost) ?? consoleHost
        environment = try settings.choice(.environment) ?? environment
        try readPorts(settings)
        if let text = try settings.text(.store) { store = try ServerConfiguration.store(text) }
        demo = try settings.flag(.demo) ?? demo
        try readLogging(settings)
        if let text = try settings.text(.clock) {
            guard let setting = ClockSetting(text) else {
                throw SettingKey.clock.refusal(
                    text,
                    "system, adjustable, +1h, -7d, or a moment like 2026-11-21T00:00:00Z"
                )
            }
            clock = setting
        }
        try readLimits(settings)
        try readTrust(settings)
        try readDrills(settings)
    }

    private mutating func readPorts(_ settings: Settings) throws {
        apiPort = try settings.port(.apiPort) ?? apiPort
        binaryPort = try settings.port(.binaryPort) ?? binaryPort
        feedbackPort = try settings.port(.feedbackPort) ?? feedbackPort
        devicePort = try settings.port(.devicePort) ?? devicePort
        activationPort = try settings.port(.activationPort) ?? activationPort
        consolePort = try settings.port(.consolePort) ?? consolePort
    }

    private mutating func readLogging(_ settings: Settings) throws {
        logFormat = try settings.choice(.logFormat) ?? logFormat
        logLevel = try settings.choice(.logLevel) ?? logLevel
    }

    private mutating func readLimits(_ settings: Settings) throws {
        if let days = try settings.number(.storageDays, in: 1...365) { longestStorage = .seconds(days * 86_400) }
        if let days = try settings.number(.journalDays, in: 1...3650) { journalAge = .seconds(days * 86_400) }
        if let size = try settings.number(.journalSize, in: 1...1_048_576) { journalBytes = size << 20 }
        try readFairness(settings)
        uniqueID = try settings.choice(.uniqueID) ?? uniqueID
        appsPerDevice = try settings.number(.appsPerDevice, in: 1...10_000) ?? appsPerDevice
        acceptsNonJSON = try settings.flag(.acceptNonJSON) ?? acceptsNonJSON
        binaryPayloadBytes = try settings.number(.binaryPayloadSize, in: 256...2048) ?? binaryPayloadBytes
        binaryInHand = try settings.number(.binaryInHand, in: 1...100_000) ?? binaryInHand
        feedbackRecords = try settings.number(.feedbackSize, in: 1...1_000_000) ?? feedbackRecords
        if let names = try settings.texts(.broadcastApps) { broadcastApps = try ServerConfiguration.apps(names) }
        channelLimit = try settings.number(.channelLimit, in: 0...1_000_000) ?? channelLimit
        // MQTT counts keep alive in 16 bits of seconds (MQTT 5 §3.1.2.10).
        longestKeepAlive = try settings.duration(.keepAlive, in: .seconds(1) ... .seconds(65_535)) ?? longestKeepAlive
        gracePeriod = try settings.duration(.gracePeriod, in: .zero ... .seconds(600)) ?? gracePeriod
        providerIdle = try settings.duration(.providerIdle, in: .seconds(5) ... .seconds(86_400)) ?? providerIdle
    }

    private mutating func readDrills(_ settings: Settings) throws {
        drills = try (try settings.texts(.drill) ?? []).map(DrillOptions.configured)
        guard drills.count <= DrillLimits.count else {
            throw SettingKey.drill.refusal("\(drills.count) drills", "at most \(DrillLimits.count)")
        }
        allowsPayloadDrills = try settings.flag(.payloadDrills) ?? allowsPayloadDrills
        allowsPayloadDrillsInPublic = try settings.flag(.payloadDrillsInPublic) ?? allowsPayloadDrillsInPublic
        try checkPayloadDrills(on: host)
    }

    /// Payload drills on a public address must be said twice.
    /// - Parameter host: Where the provider API listens; on a reload not what the new configuration says.
    /// - Throws: ``CommandError/Code/configuration``.
    func checkPayloadDrills(on host: String) throws {
        guard !allowsPayloadDrills || allowsPayloadDrillsInPublic || !ListenAddress.isPublic(host) else {
            throw CommandError(
                .configuration,
                "payload-drills lets whoever may send decide what the service answers, and \(host) is for everybody: "
                    + "choose a private address with --host, or say --payload-drills-in-public"
            )
        }
    }

    private mutating func readTrust(_ settings: Settings) throws {
        let grace = try settings.duration(.revocationGrace, in: .zero ... .seconds(365 * 86_400))
        revocationGrace = grace ?? revocationGrace
        revocationLists = try settings.choice(.revocationLists) ?? revocationLists
        if let days = try settings.number(.deviceCertificateDays, in: 1...3650) {
            deviceCertificateLifetime = .seconds(days * 86_400)
        }
        unmarkedCertificates = try settings.choice(.unmarkedCertificates) ?? unmarkedCertificates
    }

    private static func apps(_ names: [String]) throws -> BroadcastApps {
        guard names != ["all"] else { return .all }
        guard names != ["none"] else { return .only([]) }
        let bundles = try names.map { name in
            guard let bundle = Topic(name), name != "all", name != "none" else {
                throw SettingKey.broadcastApps.refusal(name, "bundle identifiers, or `all` or `none` alone")
            }
            return bundle
        }
        return .only(Set(bundles))
    }

    private mutating func readFairness(_ settings: Settings) throws {
        backgroundBurst = try settings.number(.backgroundBurst, in: 1...1000) ?? backgroundBurst
        backgroundPerHour = try settings.number(.backgroundPerHour, in: 0...3600) ?? backgroundPerHour
        for name in try settings.texts(.newsstandTopic) ?? [] {
            guard let topic = Topic(name) else {
                throw SettingKey.newsstandTopic.refusal(name, "a topic, like com.example.magazine")
            }
            newsstandTopics.insert(topic)
        }
        tokenBurst = try settings.number(.tokenBurst, in: 1...1_000_000) ?? tokenBurst
        tokenRate = try settings.number(.tokenRate, in: 0...1_000_000) ?? tokenRate
        if let size = try settings.number(.notificationMemory, in: 1...1_048_576) { notificationBytes = size << 20 }
    }

    private static func store(_ text: String) throws -> Store {
        guard text != "sqlite" else { return .sqlite }
        guard !text.hasPrefix("nats://") else {
            throw CommandError(.configuration, "store: NATS is not built into this version: use `sqlite`")
        }
        throw SettingKey.store.refusal(text, "sqlite")
    }

    private static func isHostname(_ name: String) -> Bool {
        (1...253).contains(name.utf8.count)
            && name.utf8.allSatisfy { byte in
                switch byte {
                case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                    UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: ":"),
                    UInt8(ascii: "*"), UInt8(ascii: "_"):
                    true
                default: false
                }
            }
    }
}

extension SettingKey {
    /// The error for a value of the right shape that says nothing possible.
    func refusal(_ value: String, _ wanted: String) -> CommandError {
        let value = LogText.escaped(value, limit: 64)
        return CommandError(.configuration, "\(rawValue) cannot be \"\(value)\": write \(wanted)")
    }
}

extension Settings {
    func port(_ key: SettingKey) throws -> Int? {
        try number(key, in: 0...65_535)
    }

    func number(_ key: SettingKey, in range: ClosedRange<Int>) throws -> Int? {
        guard let number = try number(key) else { return nil }
        guard range.contains(number) else {
            throw key.refusal(String(number), "a number from \(range.lowerBound) to \(range.upperBound)")
        }
        return number
    }

    func duration(_ key: SettingKey, in range: ClosedRange<Duration>) throws -> Duration? {
        guard let text = try text(key) else { return nil }
        guard let duration = DurationText.read(text), range.contains(duration) else {
            let bounds = "\(range.lowerBound.components.seconds)s to \(range.upperBound.components.seconds)s"
            throw key.refusal(text, "a time from \(bounds), like \(key.example)")
        }
        return duration
    }

    func choice<Value: RawRepresentable & CaseIterable>(_ key: SettingKey) throws -> Value?
    where Value.RawValue == String {
        guard let text = try text(key) else { return nil }
        guard let value = Value(rawValue: text) else {
            throw key.refusal(text, Value.allCases.map(\.rawValue).joined(separator: " or "))
        }
        return value
    }

    func address(_ key: SettingKey) throws -> String? {
        guard let text = try text(key) else { return nil }
        guard !text.isEmpty, !text.contains(where: \.isWhitespace), !text.contains("/") else {
            throw key.refusal(text, "an address or a name of this machine, like 127.0.0.1 or 0.0.0.0")
        }
        return text
    }
}
