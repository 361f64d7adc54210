/// Which settings a running service takes over on SIGHUP.
extension SettingKey {
    /// Whether a change holds at once; if not, from the next start.
    var isLive: Bool {
        switch self {
        case .acceptNonJSON, .broadcastApps, .drill, .journalDays, .journalSize, .keepAlive, .logLevel, .payloadDrills,
            .payloadDrillsInPublic, .storageDays, .uniqueID:
            true
        default: false
        }
    }
}

extension ServerConfiguration {
    /// The settings in which another configuration differs.
    func changes(to other: ServerConfiguration) -> [SettingKey] {
        SettingKey.allCases.filter { value(of: $0) != other.value(of: $0) }
    }

    private func value(of key: SettingKey) -> AnyHashable {
        switch key {
        case .apiToken, .apps, .console, .consoleToken, .database, .feedback, .feedbackEvery, .interface, .lease,
            .relayHost, .relayPort, .relayWindow, .retryFor, .unhealthyAfter:
            // Of the relay: a service does not read them.
            false
        case .alert, .allow, .app, .badge, .ca, .certificate, .code, .collapseID, .connectionsPerHour, .desktop,
            .expiration,
            .folder, .identity, .key, .keyID, .language, .longestPause, .payload, .priority, .pushType, .screen,
            .screenHost,
            .service, .sound, .team, .title, .topic:
            // Of the commands that are clients: a service does not read them.
            false
        case .acceptNonJSON: acceptsNonJSON
        case .activationPort: activationPort
        case .apiPort: apiPort
        case .appsPerDevice: appsPerDevice
        case .backgroundBurst: backgroundBurst
        case .backgroundPerHour: backgroundPerHour
        case .binaryInHand: binaryInHand
        case .binaryPayloadSize: binaryPayloadBytes
        case .binaryPort: binaryPort
        case .broadcastApps: broadcastApps
        case .channelLimit: channelLimit
        case .clock: clock
        case .consoleHost: consoleHost
        case .consolePort: consolePort
        case .data: data
        case .demo: demo
        case .deviceCertificateDays: deviceCertificateLifetime
        case .devicePort: devicePort
        case .drill: drills
        case .environment: environment
        case .feedbackPort: feedbackPort
        case .feedbackSize: feedbackRecords
        case .gracePeriod: gracePeriod
        case .host: host
        case .hostname: hostnames
        case .journalDays: journalAge
        case .journalSize: journalBytes
        case .keepAlive: longestKeepAlive
        case .logFormat: logFormat
        case .logLevel: logLevel
        case .payloadDrills: allowsPayloadDrills
        case .payloadDrillsInPublic: allowsPayloadDrillsInPublic
        case .providerIdle: providerIdle
        case .newsstandTopic: newsstandTopics
        case .notificationMemory: notificationBytes
        case .revocationGrace: revocationGrace
        case .revocationLists: revocationLists
        case .storageDays: longestStorage
        case .store: store
        case .tokenBurst: tokenBurst
        case .tokenRate: tokenRate
        case .uniqueID: uniqueID
        case .unmarkedCertificates: unmarkedCertificates
        }
    }
}
