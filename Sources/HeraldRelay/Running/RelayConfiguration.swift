package import HeraldModel

/// How a relay works.
package struct RelayConfiguration: Sendable, Hashable {
    /// The environment of a row that says none, and whose device says none.
    package var environment = PushEnvironment.production
    /// How long a claim lasts that is not extended.
    package var lease: Duration = .seconds(60)
    /// How many rows it may have in hand at one time.
    package var window = 2000
    /// How many rows it claims at a time.
    package var batch = 500
    /// How long an answer may take.
    package var timeout: Duration = .seconds(30)
    /// How long after a crash the journal is asked: what was on its way has arrived by then.
    package var settling: Duration = .seconds(1)
    /// How often the feedback services are read.
    package var feedbackPause: Duration = .seconds(3600)
    /// The age of the oldest row that could have been sent, from which on the relay is not healthy.
    package var unhealthyAge: Duration = .seconds(300)
    /// How often the queue's progress is measured.
    package var progressPause: Duration = .seconds(5)
    package var rules = AnswerRules()
    package var brake = DeathBrake.Limits()

    package init() {}
}
