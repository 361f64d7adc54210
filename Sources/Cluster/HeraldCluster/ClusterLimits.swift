/// The numbers of a cluster, with their reasons.
package enum ClusterLimits {
    /// Partitions of a cluster: JetStream changes its behavior at 1,000,000 subjects in a stream.
    package static let partitions = 1...64

    /// The partitions of a new cluster.
    package static let defaultPartitions = 4

    /// The time after which the log removes a tombstone: a second is the least that JetStream takes.
    package static let tombstoneTimeToLive = Duration.seconds(1)

    /// The time after which the log removes the tombstone of a record that nodes follow.
    ///
    /// A node that was cut off for longer may have missed it, and has to load everything again.
    package static let removedRecordTimeToLive = Duration.seconds(3600)

    /// The broadcasts of one channel that the log keeps, stored ones and others apart.
    ///
    /// A node that was cut off hands them out when it is back. 32 are 160 KiB at most; a node that has missed more has
    /// subscribers that get the newest 32.
    package static let broadcastsPerChannel = 32

    /// The time that the log keeps a broadcast that is not stored for later subscribers: longer than a leader's election.
    package static let transientTimeToLive = Duration.seconds(10)

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

    /// The pause before the removals of a partition that were not made are tried again, all together.
    package static let removalRetry = Duration.seconds(1)

    /// The most puts of one partition without an outcome; past it, its notifications are refused.
    ///
    /// A put takes 1 to 3 ms: this is the work of a second, and some megabytes.
    package static let putsInFlight = 8192

    /// The most puts for one app of a connected device that wait for their turn; past it the newer take the place of the oldest.
    ///
    /// They are put one after another, at 1 to 3 ms each. As many as a device may have in flight.
    package static let putsInTurn = 128

    /// The most slots of one read: JetStream answers at most 1,024 subjects.
    package static let slotsPerRead = 1000

    /// Attempts at a change of one record: another node changes the same record rarely, and answers are lost one at a time.
    package static let changeAttempts = 8

    /// The time for the answer to one barrier, which is usually 1 to 3 ms.
    ///
    /// A put with a lost answer has this time beyond its deadline, until its outcome counts as unknown.
    package static let barrierAttempt = Duration.seconds(2)

    /// Attempts at a barrier whose answers are lost: together longer than the election of a leader, 4 to 9 s.
    package static let barrierAttempts = 5

    /// The time for a change that a device or a provider waits for; past it, its outcome is unknown.
    ///
    /// With ``barrierAttempt`` for what follows, nobody waits longer than 9 s: as long as for a put.
    package static let changeTime = Duration.seconds(7)

    /// The time in which a node must learn what the others have stored, before it refuses a request for what it does not know.
    ///
    /// A put that follows has the rest of its time.
    package static let catchUpTime = putDeadline

    /// Device numbers that a node takes from the cluster's counter at once; those it does not hand out are lost.
    ///
    /// A device needs one in its life: 2³² numbers are 1,000,000 blocks.
    package static let deviceNumberBlock: UInt64 = 4096

    /// Numbers, or blocks of device numbers, that are left out above all known ones when the counter was overwritten: other nodes
    /// may have taken some that nobody has seen.
    package static let lostNumbers: UInt64 = 256

    /// The interval in which a follower proves that it is fresh.
    ///
    /// A node writes a barrier to each of its streams in it: 16 with 4 partitions.
    package static let followerTick = Duration.seconds(2)

    /// The age of what a follower has applied, past which it is not fresh any more: more than two ticks.
    package static let followerFreshness = Duration.seconds(5)

    /// The time without a message, although there is one, after which a follower begins anew: longer than the election of a
    /// leader, 4 to 9 s.
    package static let followerSilence = Duration.seconds(10)

    /// The time without a message, although there is one, after which the start of a follower fails: it has begun anew twice.
    package static let followerStart = Duration.seconds(30)

    /// The age past which a follower may have missed a tombstone: ``removedRecordTimeToLive``, less five minutes.
    package static let longestLag = Duration.seconds(3300)

    /// The time from the first write that is not taken until a node leaves its NATS server for another one.
    ///
    /// If some streams take writes, it is longer than an election of a leader takes, 4 to 9 s. If none does, the server may be cut
    /// off from the others, or the leaders of all streams were at one that has just died: it is as long as leaves time for three
    /// servers within 12 s. After that it doubles: perhaps no server works.
    static func writeSilence(isWhole: Bool, after departures: Int) -> Duration {
        if departures >= 3 { return .seconds(min(60, 8 << min(departures - 3, 3))) }
        return .seconds(isWhole ? departures == 0 ? 3 : 0 : 10)
    }

    /// The pause before a conditional write that met another one of the same subject in flight is tried again.
    package static let concurrentWritePause = Duration.milliseconds(1)

    /// The time in which a read must find a replica that is not behind: longer than the election of a leader, 4 to 9 s.
    package static let readDeadline = Duration.seconds(10)

    /// The time for one answer to a read; another replica may answer the next one.
    package static let readAttempt = Duration.seconds(2)

    /// The pauses between the attempts of a read: a replica that is behind catches up within milliseconds.
    package static let shortestReadPause = Duration.milliseconds(2)
    package static let longestReadPause = Duration.milliseconds(200)

    /// Attempts to make a stream, and the pause between them: servers find each other within some seconds of their start.
    package static let streamAttempts = 40
    package static let streamPause = Duration.milliseconds(250)

    /// The payload of one message between nodes: a larger answer travels in parts.
    ///
    /// A NATS server takes at most 1 MiB at once, unless it is configured otherwise.
    package static let nodeMessageBytes = 512 << 10

    /// The bytes of rings in one message, without the last ring: rings that are due at once travel together.
    package static let ringMessageBytes = 32 << 10

    /// The pause in which answers to rings are gathered: a tenth of the first one of ``ringPauses``.
    package static let ringAnswerPause = Duration.milliseconds(50)

    /// The time between two looks at the rings of a partition that are not over.
    package static let ringTick = Duration.milliseconds(100)

    /// The pauses after the ring, and after each of its repetitions to all nodes; past the last one it is given up.
    ///
    /// The first one is also the time for claims to come by themselves: after it, a barrier asks for them. A node whose NATS
    /// server stands still finds another one within 6 s. One that is cut off for 15 s dismisses its devices, which read what
    /// waits when they connect: until then and a while longer, a ring is repeated.
    package static let ringPauses: [Duration] = [.milliseconds(500)] + [1, 5, 5, 10, 1].map { .seconds($0) }

    /// The most rings of a partition that are not over; one more is sent once.
    ///
    /// They are over soon after the first of ``ringPauses``, unless a node is out of reach: this is the work of half a second
    /// or more, and some megabytes.
    package static let ringsWaiting = 8192

    /// The time in which another node must take a notification that is never stored.
    package static let passOnTime = Duration.seconds(2)

    /// The time in which other nodes must answer a query of the journal, or the question for their state.
    ///
    /// They look at their own disks: some milliseconds, or about a hundred for a busy device.
    package static let answerTime = Duration.seconds(2)

    /// The claims of an evicted node that are released at once: some hundred kilobytes on their way.
    package static let releasesInFlight = 512

    /// The time for which the client of a CONNECT is sure to wait: one that has waited longer does not replace a claim of which
    /// this node heard meanwhile.
    ///
    /// Followers are some milliseconds behind, and no known client gives up within 2 s.
    package static let promptConnect = Duration.seconds(2)

    /// The age of this node's view of a partition past which its claims count as not known.
    package static let staleClaims = Duration.seconds(5)

    /// The time without a renewal after which the others take a node for gone.
    ///
    /// A node that could not renew its record for ``NodeNameMachine/silence`` has dismissed its devices by then, also if the
    /// others hear of its last renewal ``staleClaims`` late.
    package static let nodeSilence = NodeNameMachine.silence + staleClaims
}
