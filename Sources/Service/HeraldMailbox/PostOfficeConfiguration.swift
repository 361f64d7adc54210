package import HeraldModel

/// The limits of the post office.
package struct PostOfficeConfiguration: Sendable {
    /// Longest storage of a notification.
    ///
    /// 30 days, as APNs.
    package var longestStorage: Duration = .seconds(30 * 86_400)
    /// Limit of deliveries in flight to one device.
    ///
    /// Past it notifications wait in the store. 128: a few windows of the usual receive maximum.
    package var inFlightPerDevice = 128
    /// Tick of the acknowledgement grace: a notification without an acknowledgement is stored after one to two ticks.
    ///
    /// A notification that is acknowledged before never touches the disk; the answer to the provider waits as long.
    package var acknowledgementTick: Duration = AcknowledgementGrace.tick
    /// Interval between expiry sweeps.
    ///
    /// Expired notifications are never delivered, swept or not.
    package var expirySweep: Duration = .seconds(30)
    /// Limit of expired notifications that are removed in one step.
    package var expirySweepStep = 1000
    /// Age at which the journal drops a line.
    ///
    /// 7 days, as Apple's delivery log.
    package var journalAge: Duration = .seconds(7 * 86_400)
    /// Largest size of the journal, in bytes.
    package var journalBytes = 512 << 20
    /// Refused requests that get a line in the journal: the number at once, and the rate a second after that.
    ///
    /// Far above a few faulty providers; some 15 KB of journal a second in a flood.
    package var refusalBurst = 2000
    package var refusalRate = 200
    /// Background notifications of one app on one device: the number at once, and the rate an hour after that.
    ///
    /// Past it they wait. 3 and 3: Apple advises two or three an hour. 0 an hour: no limit.
    package var backgroundBurst = 3
    package var backgroundPerHour = 3
    /// Newsstand topics, which are owed one background notification in 24 hours while their device saves power.
    package var newsstandTopics: Set<Topic> = []
    /// Limit of holds that each shard releases in one step of a second.
    package var releaseStep = 256
    /// Notifications of one device token: the number at once, and the rate a second after that.
    ///
    /// Past it the answer is `TooManyRequests`. Far above the use of any app, far below an overload. 0 a second: no limit.
    package var tokenBurst = 10_000
    package var tokenRate = 1000
    /// Limit of the memory of all notifications, in bytes.
    ///
    /// Past it the answer is `ServiceUnavailable`; past half of it slow devices get four in flight. 256 MiB: half a million
    /// short notifications, or sixty thousand of the longest.
    package var notificationBytes = 256 << 20
    /// Whether every storable notification is stored before it is sent; only in a cluster.
    package var storesFirst = false
    /// Number of delivery shards: enough that two event loops rarely contend for one lock.
    package var shardCount = 64

    package init() {}

    /// The settings that may change while the service runs.
    package var terms: StorageTerms {
        StorageTerms(longestStorage: longestStorage, journalAge: journalAge, journalBytes: journalBytes)
    }
}

extension DeliveryShard {
    init(_ configuration: PostOfficeConfiguration) {
        self.init(
            inFlightLimit: configuration.inFlightPerDevice,
            budget: BackgroundBudget(burst: configuration.backgroundBurst, perHour: configuration.backgroundPerHour),
            rates: TokenRateLimiter(burst: configuration.tokenBurst, perSecond: configuration.tokenRate)
        )
        holdRules.storesFirst = configuration.storesFirst
    }
}

/// The retention of notifications and journal, which may change while the service runs.
package struct StorageTerms: Hashable, Sendable {
    /// As ``PostOfficeConfiguration/longestStorage``.
    package var longestStorage: Duration
    /// As ``PostOfficeConfiguration/journalAge``.
    package var journalAge: Duration
    /// As ``PostOfficeConfiguration/journalBytes``.
    package var journalBytes: Int
}
