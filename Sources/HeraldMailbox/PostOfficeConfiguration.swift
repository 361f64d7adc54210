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
    /// Most devices answer within it, and the disk is never touched; the provider of a slow one is answered that much
    /// later. 10 ms.
    package var acknowledgementGrace: Duration = .milliseconds(10)
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
