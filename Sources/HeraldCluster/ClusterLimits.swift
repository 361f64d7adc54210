/// The numbers of a cluster, with their reasons.
package enum ClusterLimits {
    /// Partitions of a cluster: JetStream changes its behavior at 1,000,000 subjects in a stream.
    package static let partitions = 1...64

    /// The partitions of a new cluster.
    package static let defaultPartitions = 4

    /// The time after which the log removes a tombstone: a second is the least that JetStream takes.
    package static let tombstoneTimeToLive = Duration.seconds(1)

    /// The time that the log keeps a notification beyond its expiration.
    ///
    /// Each replica expires by its own clock, and the message itself says when it expires: a clock that is fast by less than
    /// an hour hides nothing.
    package static let timeToLiveSlack = Duration.seconds(3600)

    /// The time in which a notification must be stored; past it, the provider's request is refused, if nothing was written.
    ///
    /// Clients of providers give up after 10 s or more.
    package static let putDeadline = Duration.seconds(5)

    /// The pause before a write that was not sent, or was refused, is tried again.
    package static let putRetry = Duration.milliseconds(200)

    /// The most puts of one partition without an outcome; past it, its notifications are refused.
    ///
    /// A put takes 1 to 3 ms: this is the work of a second, and some megabytes.
    package static let putsInFlight = 8192

    /// The most slots of one read: JetStream answers at most 1,024 subjects.
    package static let slotsPerRead = 1000
}
