package import HeraldModel

/// Limits and intervals of a relay.
package struct RelayConfiguration: Sendable, Hashable {
    /// Environment of a row without one, whose device has none either.
    package var environment = PushEnvironment.production
    /// Lease: how long a claim lasts unless it is extended.
    package var lease: Duration = .seconds(60)
    /// Maximum number of rows in flight.
    package var window = 2000
    /// Maximum number of rows in one claim.
    package var batch = 1000
    /// Time limit for an answer.
    package var timeout: Duration = .seconds(30)
    /// Pause after a crash before the journal is used: requests in flight have arrived by then.
    package var settling: Duration = .seconds(1)
    /// Interval between two readings of the feedback services.
    package var feedbackPause: Duration = .seconds(3600)
    /// Age of the oldest unsent row at which the relay is unhealthy.
    package var unhealthyAge: Duration = .seconds(300)
    /// Interval between two checks of the queue.
    package var progressPause: Duration = .seconds(5)
    /// Decides about a row that may have been sent, if no journal knows.
    package var inDoubt = InDoubtChoice.repeat
    /// How long sent rows are kept; zero keeps them for ever.
    package var keepSent: Duration = .zero
    /// The same for refused, expired and failed rows.
    package var keepUnsent: Duration = .zero
    package var rules = RetryRules()
    package var deadTokenLimits = DeadTokenBreaker.Limits()

    package init() {}
}
