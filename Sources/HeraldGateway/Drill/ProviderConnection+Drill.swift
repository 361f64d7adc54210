import HeraldMailbox
import HeraldModel
import HeraldTrust
import NIOCore
import NIOSSL

/// What a drill has made of one request.
struct RequestDrill {
    /// Set if its acceptance is never told: what the record will say that of.
    var withholds: Notification?
    /// Before this moment its answer is held back.
    var answerAt = NIODeadline.uptimeNanoseconds(0)
}

/// What drills have made of one connection.
struct ConnectionDrills {
    /// An answer that waits for its moment.
    struct Held {
        let number: UInt64
        let reply: Reply
        let due: NIODeadline
    }

    /// Bounded by the requests that the connection may have in hand.
    var held: [Held] = []
    var release: Scheduled<Void>?
    /// Whether the service stops, which waits for no drill.
    var holdsNothing = false
    /// Whether a drill has said GOAWAY already.
    var hasSaidGoAway = false
    /// The drill that stops the connection, in words.
    var stopper: String?
}

// What drills do to requests and connections. No drill forges a success: a notification that a drill refuses or loses is
// on record and nowhere else, and an answer that a drill holds back is the true one.
extension ProviderConnection {
    /// Asks the drills about a notification that would be accepted.
    /// - Returns: Whether it has been dealt with here.
    func isDrilled(
        _ notification: Notification,
        _ generation: UInt32,
        _ slot: RequestSlot,
        _ environment: PushEnvironment
    ) -> Bool {
        let verdict: DrillVerdict
        do throws(PayloadDrill.Mistake) {
            guard let found = try wanted(notification, slot) else { return false }
            verdict = found
        } catch {
            refuse(slot, Refusal(.badPayload, error.text))
            return true
        }
        if let latency = verdict.latency, let context {
            var drill = slot.drill ?? RequestDrill()
            drill.answerAt = context.eventLoop.now + TimeAmount(latency)
            slot.drill = drill
        }
        switch verdict.outcome {
        case nil:
            return false
        case .refuse(let rejection, let retryAfter):
            guard isLost(notification, generation, slot, as: .refusedByDrill) else { return true }
            refuse(slot, refusal(rejection, by: verdict.origin, at: notification.received), retryAfter: retryAfter)
            return true
        case .silence(isAccepted: false):
            guard isLost(notification, generation, slot, as: .lostByDrill) else { return true }
            session.leaveUnanswered(slot)
            return true
        case .silence(isAccepted: true):
            var drill = slot.drill ?? RequestDrill()
            drill.withholds = notification
            slot.drill = drill
            post(notification, generation, slot, environment)
            return true
        case .goAway(let rejection):
            post(notification, generation, slot, environment)
            sayGoAway(rejection)
            return true
        case .drop:
            guard isLost(notification, generation, slot, as: .lostByDrill) else { return true }
            drop()
            return true
        case .shutdown:
            guard isLost(notification, generation, slot, as: .refusedByDrill) else { return true }
            stopByDrill(verdict.origin)
            refuse(slot, refusal(.shutdown, by: verdict.origin, at: notification.received))
            return true
        }
    }

    /// What a request is told that came to a connection which stops.
    var stopRefusal: Refusal {
        guard let stopper = drills.stopper else {
            return Refusal(.shutdown, "the service is stopping; connect again")
        }
        return refusal(.shutdown, by: stopper, at: service.clock.now())
    }

    /// Gives an answer that a drill has its say about: later, or never.
    func give(_ reply: Reply, to slot: RequestSlot, _ drill: RequestDrill) {
        if let notification = drill.withholds {
            service.letterBox.note(.answerWithheldByDrill, about: notification)
            return session.leaveUnanswered(slot)
        }
        guard let context, !drills.holdsNothing, drill.answerAt > context.eventLoop.now, slot.isStreamOpen else {
            return session.reply(to: slot, reply)
        }
        session.keepInHand(slot)
        drills.held.append(ConnectionDrills.Held(number: slot.number, reply: reply, due: drill.answerAt))
        scheduleRelease(context)
    }

    /// Gives the answers whose moment has come, or all of them.
    func releaseHeld(until now: NIODeadline) {
        guard !drills.held.isEmpty else { return }
        let due = drills.held.filter { $0.due <= now }
        drills.held.removeAll { $0.due <= now }
        for held in due {
            guard let slot = session.request(held.number), slot.phase == .inHand else { continue }
            session.reply(to: slot, held.reply)
        }
    }

    private func wanted(_ notification: Notification, _ slot: RequestSlot) throws(PayloadDrill.Mistake) -> DrillVerdict?
    {
        if service.drills.allowsPayloadDrills, let verdict = try PayloadDrill.read(notification.payload) {
            service.drills.countPayloadDrill()
            return verdict
        }
        let named = slot.fields.withValue(of: .apnsTopic) { Topic(utf8: $0) } ?? nil
        let topic = named ?? standing.certificate?.defaultTopic
        return service.drills.judge(DrillSubject(slot: notification.slot, topic: topic))
    }

    /// Puts on record what a drill takes; false if the registration is gone, which is then said.
    private func isLost(
        _ notification: Notification,
        _ generation: UInt32,
        _ slot: RequestSlot,
        as state: JournalState
    ) -> Bool {
        switch service.letterBox.discard(Letter(notification), generation: generation, as: state) {
        case .refused(let rejection, let since):
            refuse(slot, Refusal(rejection, PostRefusal.words(rejection), since: since))
            return false
        case .accepted, .pending:
            return true
        }
    }

    private func refusal(_ rejection: Rejection, by origin: String, at now: WallTime) -> Refusal {
        Refusal(
            rejection,
            "\(origin) refuses it: nothing is wrong with the notification, and it is not delivered",
            since: rejection == .unregistered ? now : nil
        )
    }

    /// Says that nothing more will be looked at, and goes on with what came up to now.
    private func sayGoAway(_ rejection: Rejection?) {
        guard !drills.hasSaidGoAway, let context else { return }
        drills.hasSaidGoAway = true
        session.goAway(rejection.map { Reply.body($0) } ?? [], upTo: highestStream)
        // Once it is written, the library drops the requests behind it that have come already.
        writeOut(context)
    }

    /// Writes all that is ready, whether the client reads or not.
    private func writeOut(_ context: ChannelHandlerContext) {
        var hasMore = true
        while hasMore {
            output.clear()
            hasMore = session.drain(into: &output, upTo: service.configuration.writeBytes)
            guard output.readableBytes > 0 else { return }
            context.writeAndFlush(wrapOutboundOut(output), promise: nil)
        }
    }

    private func stopByDrill(_ origin: String) {
        guard let context, drills.stopper == nil else { return }
        drills.stopper = origin
        perform(lifetime.stop(requestCount: session.requestCount, now: context.eventLoop.now), context)
    }

    /// Closes as a network does that goes away: TLS says nothing either.
    private func drop() {
        guard let context else { return }
        let tls = try? context.pipeline.syncOperations.context(handlerType: NIOSSLServerHandler.self)
        close(tls ?? context)
    }

    private func scheduleRelease(_ context: ChannelHandlerContext) {
        guard let first = drills.held.map(\.due).min() else { return }
        drills.release?.cancel()
        let loop = context.eventLoop
        let connection = NIOLoopBound(self, eventLoop: loop)
        drills.release = loop.assumeIsolated().scheduleTask(deadline: first) { connection.value.releaseDue() }
    }

    private func releaseDue() {
        guard let context else { return }
        drills.release = nil
        releaseHeld(until: context.eventLoop.now)
        scheduleRelease(context)
        flushTouched()
    }
}

extension HTTP2Session {
    /// Leaves a request without an answer: its stream stays as it is until the client or the connection ends it.
    func leaveUnanswered(_ slot: RequestSlot) {
        guard slot.isStreamOpen else { return table.giveBack(slot) }
        slot.phase = .unanswered
        slot.deadline = nil
        unansweredCount += 1
    }
}
