import HeraldConsole
import HeraldGateway
import HeraldMailbox
import HeraldModel
import Logging
import Testing

@testable import HeraldCommand

@Suite struct ReloadTests {
    /// One change for each setting.
    private static let changes: [(SettingKey, @Sendable (inout ServerConfiguration) -> Void)] = [
        (.acceptNonJSON, { $0.acceptsNonJSON = true }), (.activationPort, { $0.activationPort = 1 }),
        (.apiPort, { $0.apiPort = 1 }), (.binaryPort, { $0.binaryPort = 1 }),
        (.binaryInHand, { $0.binaryInHand = 1 }), (.binaryPayloadSize, { $0.binaryPayloadBytes = 256 }),
        (.broadcastApps, { $0.broadcastApps = .only([]) }), (.channelLimit, { $0.channelLimit = 1 }),
        (.clock, { $0.clock = .shifted(by: .zero) }),
        (.consoleHost, { $0.consoleHost = "::1" }), (.consolePort, { $0.consolePort = 1 }), (.data, { $0.data = "x" }),
        (.demo, { $0.demo = true }), (.devicePort, { $0.devicePort = 1 }),
        (.deviceCertificateDays, { $0.deviceCertificateLifetime = .zero }),
        (.drill, { $0.drills = [DrillRequest(kind: "drop")] }), (.environment, { $0.environment = .sandbox }),
        (.feedbackPort, { $0.feedbackPort = 1 }), (.feedbackSize, { $0.feedbackRecords = 1 }),
        (.gracePeriod, { $0.gracePeriod = .zero }),
        (.host, { $0.host = "::1" }), (.hostname, { $0.hostnames = ["a"] }), (.journalDays, { $0.journalAge = .zero }),
        (.journalSize, { $0.journalBytes = 1 }), (.keepAlive, { $0.longestKeepAlive = .zero }),
        (.logFormat, { $0.logFormat = .json }), (.logLevel, { $0.logLevel = .trace }),
        (.payloadDrills, { $0.allowsPayloadDrills = true }),
        (.payloadDrillsInPublic, { $0.allowsPayloadDrillsInPublic = true }),
        (.providerIdle, { $0.providerIdle = .zero }),
        (.revocationGrace, { $0.revocationGrace = .seconds(9) }),
        (.revocationLists, { $0.revocationLists = .optional }),
        (.unmarkedCertificates, { $0.unmarkedCertificates = .both }),
        (.appsPerDevice, { $0.appsPerDevice = 1 }), (.backgroundBurst, { $0.backgroundBurst = 1 }),
        (.backgroundPerHour, { $0.backgroundPerHour = 1 }), (.tokenBurst, { $0.tokenBurst = 1 }),
        (.tokenRate, { $0.tokenRate = 1 }), (.notificationMemory, { $0.notificationBytes = 1 }),
        (.newsstandTopic, { $0.newsstandTopics = Set([Topic("com.example.magazine")].compactMap(\.self)) }),
        (.storageDays, { $0.longestStorage = .zero }), (.uniqueID, { $0.uniqueID = .always }),
    ]

    @Test func `a change of any setting is seen, and of that alone`() {
        #expect(ServerConfiguration().changes(to: ServerConfiguration()).isEmpty)
        for (key, change) in Self.changes {
            var changed = ServerConfiguration()
            change(&changed)
            #expect(ServerConfiguration().changes(to: changed) == [key])
        }
        // The store has one value only.
        #expect(Set(Self.changes.map(\.0)).union([.store]) == Set(SettingKey.allCases.filter { !$0.isOfClients }))
    }

    @Test func `all loggers follow the threshold, but for a level of their own`() {
        let threshold = LogThreshold(.info)
        var one = HeraldLogHandler(
            label: "a",
            format: .text,
            sink: StandardErrorSink(),
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
