import Configuration
import HeraldActivation
import HeraldConsole
import HeraldCourier
import HeraldGateway
import HeraldListener
import HeraldMailbox
import HeraldModel
import HeraldTrust

/// The settings of `herald serve`: one row each, in the order of the help and of the example file.
///
/// A new setting is a row here and a property of its part's configuration. `docs/herald.yaml` and the table of live settings
/// in `docs/operations/running.md` follow; `ManualTests` compares them.
package enum ServerSettings {
    package static let rows: [Setting<ServerConfiguration>] =
        Basics.rows + Listeners.rows + Storage.rows + ClusterSettings.rows + Limits.rows + Trust.rows + Testing.rows
        + Logs.rows

    package enum Basics: SettingGroup {
        package static let title = "Service"
        package static let rows: [Setting<ServerConfiguration>] = [
            .text(
                "data",
                \.data,
                valueName: "folder",
                wanted: "a folder",
                isAllowed: { !$0.isEmpty },
                help: {
                    "The data folder. The first start creates it."
                }
            ),
            .list(
                "hostname",
                \.hostnames,
                example: "push.example.com",
                valueName: "name",
                wanted: "a host name or an address, without a port",
                show: { $0 },
                make: { names in
                    let names = names.map(HostPort.unbracketed)
                    for name in names where !isHostname(name) { throw RefusedItem(text: name) }
                    return names
                },
                help: {
                    """
                    A further name or address for the server certificate; may be repeated. localhost, 127.0.0.1, ::1, \
                    sandbox.localhost and this machine's name are always in it. Names are added, never removed.
                    """
                }
            ),
            .choice("environment", \.environment, valueName: "environment") {
                "The environment of clients whose server name does not contain sandbox or development."
            },
            .flag("demo", \.demo) {
                "Make a provider and a device for com.example.pushchat, connect the device, and show what it receives."
            },
            .port("demo-screen-port", \.demoScreenPort) {
                "Port of the demo device's screen, on 127.0.0.1; 0 is a free one."
            },
        ]
    }

    package enum Listeners: SettingGroup {
        package static let title = "Addresses and ports"
        package static let rows: [Setting<ServerConfiguration>] =
            [
                .address("host", \.host) {
                    "Address of all listeners except the console's: 0.0.0.0 or :: for every network."
                },
                .port("api-port", \.gateway.listener.port) {
                    "Port of the provider API. For any port, 0 is a free one."
                },
                .port("binary-port", \.binary.listener.port) { "Port of the binary interface." },
                .port("feedback-port", \.feedback.listener.port) { "Port of the feedback service." },
                .port("device-port", \.deviceListener.port) { "Port for devices (MQTT)." },
                .port("activation-port", \.activation.listener.port) { "Port where devices get their certificates." },
                .address("console-host", \.consoleHost) { "Address of the console, which is for operators." },
                .port("console-port", \.consolePort) { "Port of the console: health, metrics and the admin API." },
                .choice("console-tls", \.consoleTLS, valueName: "when") {
                    "Whether the console is HTTPS; auto: unless console-host is loopback. off elsewhere wants a proxy with TLS."
                },
                .choice("console-mode", \.consoleMode, valueName: "mode") {
                    """
                    Extent of the console: read-only refuses changes at its port, api-only has no page, off has no port. The \
                    commands on this machine always work.
                    """
                },
                .text(
                    "console-url",
                    \.consoleURL,
                    valueName: "url",
                    wanted: "the address of a web server without a path, like https://console.example.com",
                    isAllowed: WebAddress.isSiteOrEmpty
                ) { "The address of a proxy by which people open the console, for links. Without it, the port's own." },
                .networks("console-proxies", \.consoleProxies) {
                    """
                    A network of proxies before the console; may be repeated. From there, X-Forwarded-For has the client's address, \
                    and X-Forwarded-Host the host.
                    """
                },
                .networks("proxy-protocol", \.proxies) {
                    """
                    A network of load balancers; may be repeated. Their connections to every listener except the console's must \
                    begin with a PROXY protocol header (version 2), whose client address then counts.
                    """
                },
            ] + DeviceAddresses.rows
    }

    package enum Storage: SettingGroup {
        package static let title = "Storage"
        package static let rows: [Setting<ServerConfiguration>] = [
            .days("storage-days", \.longestStorage, in: 1...365, isLive: true) {
                "Days that a notification waits for its device at most; APNs: 30."
            },
            .days("journal-days", \.postOffice.journalAge, in: 1...3650, isLive: true) { "Days kept in the journal." },
            .number(
                "journal-size",
                \.postOffice.journalBytes,
                in: 1...1_048_576,
                unit: 1 << 20,
                valueName: "MiB",
                isLive: true
            ) {
                "Size of the journal at most, in MiB."
            },
        ]
    }

    package enum Limits: SettingGroup {
        package static let title = "Limits and compatibility"
        package static let rows: [Setting<ServerConfiguration>] = [
            .number("background-burst", \.postOffice.backgroundBurst, in: 1...1000) {
                """
                Background notifications that Herald delivers at once to an app on a device. Of those beyond it, Herald \
                holds the newest of each app. Apple advises two or three an hour.
                """
            },
            .number("background-per-hour", \.postOffice.backgroundPerHour, in: 0...3600) {
                "Background notifications an hour after that burst; 0 for no limit."
            },
            .list(
                "newsstand-topic",
                \.postOffice.newsstandTopics,
                example: "com.example.magazine",
                valueName: "topic",
                wanted: "a topic, like com.example.magazine",
                show: { $0.map(\.name).sorted() },
                make: { Set(try $0.map(topic)) },
                help: {
                    """
                    A topic that gets one background notification a day even while its device saves power; may be repeated.
                    """
                }
            ),
            .number("token-burst", \.postOffice.tokenBurst, in: 1...1_000_000) {
                "Notifications to one device token at once. Beyond it: 429 TooManyRequests."
            },
            .number("token-rate", \.postOffice.tokenRate, in: 0...1_000_000) {
                "Notifications a second to one device token after that burst; 0 for no limit."
            },
            .number(
                "notification-memory",
                \.postOffice.notificationBytes,
                in: 1...1_048_576,
                unit: 1 << 20,
                valueName: "MiB"
            ) {
                "Memory for notifications in MiB. Beyond it: 503 ServiceUnavailable."
            },
            .number("apps-per-device", \.appsPerDevice, in: 1...10_000) {
                "Apps that a device may register, in both environments together. Beyond it Herald refuses SUBSCRIBE."
            },
            // MQTT counts keep alive in 16 bits of seconds (MQTT 5 §3.1.2.10).
            .time("keep-alive", \.courier.longestKeepAlive, in: .seconds(1) ... .seconds(65_535), isLive: true) {
                "The longest MQTT keep alive of a device."
            },
            Setting(
                "require-token",
                \.courier.tokenGrace,
                valueName: "time",
                allowed: "never, or 1s to 1h",
                isLive: true,
                help: """
                    How long after a connect a device has to present the token of each of its apps, as APNs demands it. After \
                    that, Herald holds the app's notifications until the device does.
                    """,
                show: { $0.map(DurationText.write) ?? "never" },
                read: { settings, key in
                    guard let text = try settings.text(key) else { return nil }
                    if text == "never" { return .some(nil) }
                    guard let grace = DurationText.read(text), (.seconds(1) ... .seconds(3600)).contains(grace) else {
                        throw key.refusal(text, "never, or a time from 1s to 1h, like 10s")
                    }
                    return grace
                }
            ),
            .time("provider-idle", \.providerIdle, in: .seconds(5) ... .seconds(86_400)) {
                "How long a provider's connection may be silent."
            },
            .time("unknown-age", \.unknownAge, in: .seconds(5) ... .seconds(3600)) {
                "How long a connection may live before its client has authenticated."
            },
            .number("unknown-share", \.unknownShare, in: 1...100, valueName: "percent") {
                """
                Percentage of a listener's connections that one client may have without authentication: an IPv4 \
                address, or an IPv6 network of 64 bits; at least 16 connections. Beyond it Herald closes an older one for \
                each new one.
                """
            },
            .time("grace-period", \.gracePeriod, in: .zero ... .seconds(600)) {
                "How long a stop waits for accepted work."
            },
            .choice("unique-id", \.uniqueID, valueName: "when", isLive: true) {
                "When a success has the header apns-unique-id; APNs: sandbox."
            },
            .choice("explain", \.explain, valueName: "when", isLive: true) {
                "Which answers say in words what happened and why: to requests with herald-explain: 1, or all."
            },
            .flag("accept-non-json", \.gateway.rules.takesUnreadablePayloads, isLive: true) {
                "Accept a payload that is not a JSON object, as APNs does. No app can read it."
            },
            .number("binary-payload-size", \.binary.payloadBytes, in: 256...2048, valueName: "bytes") {
                "The longest payload at the binary interface in bytes; 256 before iOS 8."
            },
            .number("binary-in-flight", \.binary.notificationsInHand, in: 1...100_000) {
                "Notifications in flight of one connection at the binary interface."
            },
            .number("feedback-size", \.feedback.recordsPerConnection, in: 1...1_000_000) {
                "Dead tokens that the feedback service sends on one connection; the next connection gets the rest."
            },
            .list(
                "broadcast-apps",
                \.gateway.rules.broadcastApps,
                example: "com.example.app",
                valueName: "bundle id",
                wanted: "bundle identifiers, or `all` or `none` alone",
                isLive: true,
                show: { apps in
                    switch apps {
                    case .all: ["all"]
                    case .only(let bundles): bundles.isEmpty ? ["none"] : bundles.map(\.name).sorted()
                    }
                },
                make: { names in
                    if names == ["all"] { return .all }
                    if names == ["none"] { return .only([]) }
                    for name in names where name == "all" || name == "none" { throw RefusedItem(text: name) }
                    return .only(Set(try names.map(topic)))
                },
                help: {
                    "An app that may have broadcast channels; may be repeated. all or none instead."
                }
            ),
            .number("channel-limit", \.channelsPerApp, in: 0...1_000_000) {
                "Broadcast channels of an app in one environment; APNs: 10000."
            },
        ]
    }

    package enum Trust: SettingGroup {
        package static let title = "Certificates"
        package static let rows: [Setting<ServerConfiguration>] = [
            .days("device-certificate-days", \.activation.certificateLifetime, in: 1...3650) {
                "Lifetime of certificates issued at activation, in days. Devices renew them after two thirds of it."
            },
            .time("revocation-grace", \.revocations.grace, in: .zero ... .seconds(365 * 86_400)) {
                "How long a revocation list stays valid after its nextUpdate. After that, Herald refuses new connections."
            },
            .choice("device-topics", \.courier.deviceTopics, valueName: "topics", isLive: true) {
                """
                The topics that devices may register: any, or those known by a credential that names them or a team that owns \
                them. Registrations that are there stay.
                """
            },
            .choice("revocation-lists", \.revocationLists, valueName: "need") {
                "Whether an authority must have a revocation list; optional is for authorities that publish none."
            },
            .choice("unmarked-certificates", \.unmarkedCertificates, valueName: "environment") {
                "The environment of provider certificates that name none. Herald's own certificates name theirs."
            },
        ]
    }

    package enum Testing: SettingGroup {
        package static let title = "Tests"
        package static let rows: [Setting<ServerConfiguration>] = [
            .list(
                "drill",
                \.drills,
                example: "refuse --reason Unregistered --share 5% --for 10m",
                valueName: "words",
                wanted: "at most \(DrillLimits.count) drills",
                isLive: true,
                show: { $0.map(\.kind) },
                make: { texts in
                    guard texts.count <= DrillLimits.count else { throw RefusedItem(text: "\(texts.count) drills") }
                    return try texts.map(DrillOptions.configured)
                },
                help: {
                    "A drill that starts with the service, written as for `herald drill start`, with --for; may be repeated."
                }
            ),
            .flag("console-drills", \.letsSendersDrill) {
                "Let senders start and stop drills over the console, too."
            },
            .flag("payload-drills", \.allowsPayloadDrills, isLive: true) {
                "Let a payload choose its own answer (docs/drills.md)."
            },
            .flag("payload-drills-in-public", \.allowsPayloadDrillsInPublic, isLive: true) {
                "Allow payload drills even where everybody can reach the service."
            },
            .list(
                "catch",
                \.catchScope,
                example: "com.example.app",
                valueName: "topic",
                wanted: "topics like com.example.app, or `all` or `off` alone",
                show: { scope in
                    switch scope {
                    case nil: []
                    case .off: ["off"]
                    case .all: ["all"]
                    case .topics(let topics): topics.map(\.name).sorted()
                    }
                },
                make: { names in
                    if names.isEmpty { return nil }
                    if names == ["all"] { return .all }
                    if names == ["off"] { return .off }
                    for name in names where name == "all" || name == "off" { throw RefusedItem(text: name) }
                    return .topics(Set(try names.map { TopicScope.bundle(of: try topic($0)) }))
                },
                help: {
                    """
                    An app whose payloads the service keeps in memory for the console and for tests; may be repeated. all or \
                    off instead. Without it none, with --demo all.
                    """
                }
            ),
            .flag("catch-in-public", \.catchesInPublic) {
                "Allow it even where everybody can reach the service."
            },
            Setting(
                "clock",
                \.clock,
                valueName: "clock",
                isLive: false,
                help: """
                    The service's clock: system, adjustable (can be moved by the admin API), +1h or -7d (ahead of or \
                    behind the system's), or a start time like 2026-11-21T00:00:00Z.
                    """,
                show: { $0.text },
                read: { settings, key in
                    guard let text = try settings.text(key) else { return nil }
                    guard let clock = ClockSetting(text) else {
                        throw key.refusal(
                            text,
                            "system, adjustable, +1h, -7d, or a time like 2026-11-21T00:00:00Z"
                        )
                    }
                    return clock
                }
            ),
        ]
    }

    package enum Logs: SettingGroup {
        package static let title = "Log"
        package static let rows: [Setting<ServerConfiguration>] = [
            .choice("log-format", \.logFormat, valueName: "format") {
                "The form of the log. Text becomes entries with fields where systemd's journal reads standard error."
            },
            .choice("log-level", \.logLevel, valueName: "level", isLive: true) {
                "The least severe level that is logged. No level logs payloads, tokens or keys."
            },
        ]
    }

    private static func topic(_ name: String) throws -> Topic {
        guard let topic = Topic(name) else { throw RefusedItem(text: name) }
        return topic
    }

    package static func isHostname(_ name: String) -> Bool {
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
