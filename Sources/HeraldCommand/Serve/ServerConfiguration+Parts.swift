import HeraldCourier
import HeraldGateway
import HeraldMailbox
import HeraldModel
import HeraldTrust

/// What the configuration means for each part.
extension ServerConfiguration {
    var revocations: RevocationPolicy {
        RevocationPolicy(grace: revocationGrace, mayBeMissing: revocationLists == .optional)
    }

    var unmarkedEnvironments: Set<PushEnvironment> {
        switch unmarkedCertificates {
        case .refused: []
        case .production: [.production]
        case .sandbox: [.sandbox]
        case .both: Set(PushEnvironment.allCases)
        }
    }

    var postOffice: PostOfficeConfiguration {
        var settings = PostOfficeConfiguration()
        settings.longestStorage = longestStorage
        settings.journalAge = journalAge
        settings.journalBytes = journalBytes
        return settings
    }

    var channels: ChannelOfficeConfiguration {
        var settings = ChannelOfficeConfiguration()
        settings.channelsPerApp = channelLimit
        settings.channelsInAll = max(settings.channelsInAll, channelLimit)
        return settings
    }

    var gateway: GatewayConfiguration {
        var settings = GatewayConfiguration(host: host, port: apiPort, environment: environment)
        // What the gateway itself adds: a second of notice, and one to close what is left.
        settings.timeouts.shutdown = max(.zero, gracePeriod - .seconds(2))
        settings.rules.takesUnreadablePayloads = acceptsNonJSON
        settings.rules.broadcastApps = broadcastApps
        settings.rules.alwaysSendsUniqueID = uniqueID == .always
        return settings
    }

    var courier: CourierConfiguration {
        var settings = CourierConfiguration()
        settings.environment = environment
        settings.longestKeepAlive = longestKeepAlive
        settings.longestSession = longestStorage
        return settings
    }
}
