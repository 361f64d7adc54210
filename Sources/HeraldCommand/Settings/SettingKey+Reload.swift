/// Which settings a running service takes over on SIGHUP.
extension SettingKey {
    /// Whether a change holds at once; if not, from the next start.
    var isLive: Bool {
        switch self {
        case .acceptNonJSON, .drill, .journalDays, .journalSize, .keepAlive, .logLevel, .payloadDrills,
            .payloadDrillsInPublic, .storageDays, .uniqueID:
            true
        case .activationPort, .apiPort, .binaryPort, .clock, .consoleHost, .consolePort, .data, .demo, .devicePort,
            .environment, .feedbackPort, .gracePeriod, .host, .hostname, .logFormat, .providerIdle, .revocationGrace,
            .revocationLists,
            .store, .unmarkedCertificates:
            false
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
        case .acceptNonJSON: acceptsNonJSON
        case .activationPort: activationPort
        case .apiPort: apiPort
        case .binaryPort: binaryPort
        case .clock: clock
        case .consoleHost: consoleHost
        case .consolePort: consolePort
        case .data: data
        case .demo: demo
        case .devicePort: devicePort
        case .drill: drills
        case .environment: environment
        case .feedbackPort: feedbackPort
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
        case .revocationGrace: revocationGrace
        case .revocationLists: revocationLists
        case .storageDays: longestStorage
        case .store: store
        case .uniqueID: uniqueID
        case .unmarkedCertificates: unmarkedCertificates
        }
    }
}
