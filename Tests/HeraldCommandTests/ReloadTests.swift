import ArgumentParser
import HeraldConsole
import HeraldGateway
import HeraldMailbox
import HeraldModel
import Logging
import Testing

@testable import HeraldCommand
@testable import HeraldService

@Suite struct ReloadTests {
    /// A value of each setting that is not its default.
    private static let values: [String: [String]] = [
        "accept-non-json": [], "broadcast-apps": ["none"], "clock": ["adjustable"], "console-host": ["::1"],
        "console-mode": ["read-only"], "console-proxies": ["10.0.0.0/8"], "console-url": ["https://a"],
        "console-tls": ["on"], "console-drills": [],
        "cluster": ["nats://a"], "cluster-accept-loss": [], "cluster-ca": ["ca.pem"], "cluster-certificate": ["a.pem"],
        "cluster-credentials": ["herald.nk"], "cluster-key": ["cluster.key"], "cluster-monitor": ["http://a:8222"],
        "cluster-partitions": ["8"],
        "cluster-replicas": ["5"], "cluster-unverified": [], "node": ["a"],
        "catch": ["all"], "catch-in-public": [],
        "data": ["x"], "device-addresses": ["a"], "moved-to": ["a"], "demo": [], "device-topics": ["known"],
        "drill": ["drop --for 10m"], "environment": ["sandbox"],
        "explain": ["always"],
        "host": ["::1"],
        "hostname": ["a"], "log-format": ["json"], "log-level": ["trace"],
        "newsstand-topic": ["com.example.magazine"], "payload-drills": [], "payload-drills-in-public": [],
        "proxy-protocol": ["10.0.0.0/8"], "revocation-lists": ["optional"], "unique-id": ["always"],
        "unknown-share": ["50"], "unmarked-certificates": ["both"],
    ]

    /// Every other number and duration allows 300.
    private static func arguments(_ setting: Setting<ServerConfiguration>) -> [String] {
        ["--" + setting.key.name] + (values[setting.key.name] ?? ["300"])
    }

    @Test(arguments: ServerSettings.rows)
    func `a change of a setting is seen, and of that alone`(setting: Setting<ServerConfiguration>) throws {
        let changed = try Serve.parse(Self.arguments(setting)).configuration(environment: [:])
        #expect(ServerConfiguration().changes(to: changed).map(\.key) == [setting.key])
    }

    @Test func `all loggers follow the threshold, but for a level of their own`() {
        let threshold = LogThreshold(.info)
        var one = HeraldLogHandler(
            label: "a",
            format: .text,
            sink: LogWriter(.stream(2)) { _ in [] },
            clock: ServiceClock(),
            threshold: threshold
        )
        #expect(one.logLevel == .info)
        for level in Logger.Level.allCases {
            threshold.level = level
            #expect(one.logLevel == level)
        }
        one.logLevel = .error
        threshold.level = .trace
        #expect(one.logLevel == .error)
    }
}
