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
        settings.backgroundBurst = backgroundBurst
        settings.backgroundPerHour = backgroundPerHour
        settings.newsstandTopics = newsstandTopics
        settings.tokenBurst = tokenBurst
        settings.tokenRate = tokenRate
        settings.notificationBytes = notificationBytes
        return settings
    }

    var registry: RegistryConfiguration {
        var settings = RegistryConfiguration()
        settings.appsPerDevice = appsPerDevice
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
        settings.timeouts.idle = providerIdle
        settings.timeouts.idleUnknown = min(settings.timeouts.idleUnknown, providerIdle)
        settings.rules.takesUnreadablePayloads = acceptsNonJSON
        settings.rules.broadcastApps = broadcastApps
        settings.rules.alwaysSendsUniqueID = uniqueID == .always
        return settings
    }

    var binary: BinaryConfiguration {
        var settings = BinaryConfiguration(host: host, port: binaryPort, environment: environment)
        settings.payloadBytes = binaryPayloadBytes
        settings.notificationsInHand = binaryInHand
        settings.shutdown = max(.zero, gracePeriod - .seconds(2))
        settings.idle = providerIdle
        return settings
    }

    var feedback: FeedbackConfiguration {
        var settings = FeedbackConfiguration(host: host, port: feedbackPort, environment: environment)
        settings.recordsPerConnection = feedbackRecords
        return settings
    }

    var courier: CourierConfiguration {
        var settings = CourierConfiguration()
        settings.environment = environment
        settings.longestKeepAlive = longestKeepAlive
        settings.longestSession = longestStorage
        settings.subscriptionsPerSession = max(settings.subscriptionsPerSession, appsPerDevice)
        return settings
    }
}
