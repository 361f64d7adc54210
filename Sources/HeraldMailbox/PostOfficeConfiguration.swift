package import HeraldModel

/// The limits of the post office.
package struct PostOfficeConfiguration: Sendable {
    /// The longest that anything is stored.
    ///
    /// 30 days, as APNs.
    package var longestStorage: Duration = .seconds(30 * 86_400)
    /// How many deliveries one connection may have that have not ended, in its window and behind it.
    ///
    /// Past it the newest per topic waits in the store. 128: some windows of the usual receive maximum.
    package var outstandingPerDevice = 128
    /// How long a notification that was sent to a connected device may wait for its acknowledgement before it is stored
    /// (it is stored after one to two of these).
    ///
    /// What a device answers within it never touches the disk; the provider of one that does not is answered that much
    /// later. 40 ms: with a thousand in flight at 15,000 to 50,000 a second acknowledgements take 20 to 70 ms, as they do
    /// over most networks, and to store and remove all those as well is about a quarter of the work.
    package var acknowledgementGrace: Duration = .milliseconds(40)
    /// How often the store is rid of what expired.
    ///
    /// What is expired is never delivered, swept or not.
    package var expirySweep: Duration = .seconds(30)
    /// How many expired notifications are removed in one step.
    package var expirySweepStep = 1000
    /// How long the journal keeps a line.
    ///
    /// 7 days, as Apple's delivery log.
    package var journalAge: Duration = .seconds(7 * 86_400)
    /// How large the journal may grow, in bytes.
    package var journalBytes = 1 << 30
    /// How many background notifications one app may have on one device at once, and how many an hour after that.
    ///
    /// What is over waits. 3 and 3: Apple advises two or three an hour. 0 an hour: no limit.
    package var backgroundBurst = 3
    package var backgroundPerHour = 3
    /// Topics of the newsstand kind, which are owed one background notification in 24 hours while their device saves power.
    package var newsstandTopics: Set<Topic> = []
    /// How many of those that waited for the clock are read on in one step of a second, by each share of the devices.
    package var releaseStep = 256
    /// How many notifications one device token may be sent at once, and how many a second after that.
    ///
    /// Past it: `TooManyRequests`. Far above what any app shows, far below what keeps one slot busy. 0 a second: no limit.
    package var tokenBurst = 10_000
    package var tokenRate = 1000
    /// How much memory notifications may take, wherever they are held, in bytes.
    ///
    /// Past it: `ServiceUnavailable`; past half of it, devices that do not keep up hold next to nothing. 256 MiB: half a
    /// million short notifications, or sixty thousand of the longest.
    package var notificationBytes = 256 << 20
    /// How many locks share the devices: enough that two event loops rarely meet at one.
    package var shardCount = 64

    package init() {}

    /// The part that may change while the service runs.
    package var terms: StorageTerms {
        StorageTerms(longestStorage: longestStorage, journalAge: journalAge, journalBytes: journalBytes)
    }
}

/// How long things are kept: what may change while the service runs.
package struct StorageTerms: Hashable, Sendable {
    /// As ``PostOfficeConfiguration/longestStorage``.
    package var longestStorage: Duration
    /// As ``PostOfficeConfiguration/journalAge``.
    package var journalAge: Duration
    /// As ``PostOfficeConfiguration/journalBytes``.
    package var journalBytes: Int
}
