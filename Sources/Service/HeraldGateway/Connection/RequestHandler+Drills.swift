import HeraldMailbox
import HeraldModel
import HeraldTrust
import NIOCore

/// Drills, and the replies that they delay.
extension RequestHandler {
    /// The refusal of requests on a connection that is stopping.
    var stopRefusal: Refusal {
        guard let stoppingDrill = ending.drill else {
            return Refusal(.shutdown, "the service is stopping; connect again")
        }
        return refusal(.shutdown, by: stoppingDrill, at: service.clock.now())
    }

    /// The time of the next delayed reply; nil for none.
    var nextDelayedReply: NIODeadline? { delayed.nextDue }

    /// Sends the delayed replies that are due.
    func sendDelayedReplies(_ now: NIODeadline) {
        for (number, reply) in delayed.takeDue(now) {
            guard let request = session.request(number), request.phase == .posted else { continue }
            session.reply(to: request, reply)
        }
    }

    /// Sends all delayed replies and delays none from now on.
    func stopDelaying() {
        delayed.isEnabled = false
        sendDelayedReplies(.distantFuture)
    }

    /// Delays the answer to a request for overload.
    func holdBack(_ request: PendingRequest) {
        let drill = request.beginDrill()
        drill.answerAt = max(drill.answerAt, DelayedReplies.due(after: eventLoop.now))
    }

    /// The verdict of the drills on a notification that would be accepted.
    func verdict(
        on post: Post,
        _ request: PendingRequest,
        hasHerald: Bool
    ) throws(PayloadDrill.Mistake) -> DrillVerdict? {
        if hasHerald, service.drills.allowsPayloadDrills,
            let verdict = try PayloadDrill.read(post.notification.payload),
            service.drills.performs(verdict, of: post.notification)
        {
            return verdict
        }
        let named = request.fields.withValue(of: .apnsTopic) { Topic(utf8: $0) } ?? nil
        let topic = named ?? authorization.certificate?.defaultTopic
        return service.drills.judge(DrillSubject(slot: post.notification.slot, topic: topic))
    }

    /// Notes that a payload asks for a drill where payloads may not have any.
    func noteUnheededDrill(of notification: Notification, _ request: PendingRequest) {
        guard !service.drills.allowsPayloadDrills, UnheededDrill.isIn(notification.payload) else { return }
        request.beginDrill().unheeded = notification
    }

    /// Journals a drill that had no effect, of a notification that is accepted.
    func recordUnheededDrill(of request: PendingRequest) {
        guard let notification = request.drill?.unheeded else { return }
        service.sink.record(.drillUnheeded, about: notification)
    }

    /// Performs a verdict on a notification.
    func drill(_ post: Post, _ request: PendingRequest, _ verdict: DrillVerdict) -> ConnectionEffect? {
        if let latency = verdict.latency { request.beginDrill().answerAt = eventLoop.now + TimeAmount(latency) }
        switch verdict.outcome {
        case nil, .latency, .streams:
            self.post(post, request)
        case .refuse(let refusalReason, let retryAfter):
            guard discard(post, request, as: .refusedByDrill) else { return nil }
            let refusal = refusal(refusalReason, by: verdict.cause, at: post.notification.received)
            answer(request, refusing: refusal, retryAfter: retryAfter.map { Int($0.components.seconds) })
        case .refuseAs(let status, let reason, let retryAfter):
            guard discard(post, request, as: .refusedByDrill) else { return nil }
            answer(request, status: status, reason: reason, retryAfter: retryAfter, why(verdict.cause))
        case .silence(isAccepted: false):
            guard discard(post, request, as: .lostByDrill) else { return nil }
            endCatch(request, withoutAnswer: "a drill loses it: the provider gets no answer")
            session.leaveUnanswered(request)
        case .reset(isAccepted: false):
            guard discard(post, request, as: .lostByDrill) else { return nil }
            endCatch(request, withoutAnswer: "a drill loses it and resets its stream (INTERNAL_ERROR)")
            session.leaveUnanswered(request, reset: .internalError)
        case .refuseStream:
            guard discard(post, request, as: .refusedByDrill) else { return nil }
            endCatch(request, withoutAnswer: "a drill refuses its stream (REFUSED_STREAM): it may be sent again")
            session.leaveUnanswered(request, reset: .refusedStream)
        case .silence(isAccepted: true):
            request.beginDrill().withholds = post.notification
            self.post(post, request)
        case .reset(isAccepted: true):
            let drill = request.beginDrill()
            (drill.withholds, drill.reset) = (post.notification, .internalError)
            self.post(post, request)
        case .goAway(let refusalReason, let isTwoStep):
            self.post(post, request)
            guard !ending.hasSentGoAway else { return nil }
            ending.hasSentGoAway = true
            let json = refusalReason.map { Reply.body($0) } ?? []
            guard !isTwoStep else {
                session.goAwayInTwoSteps(json)
                return nil
            }
            session.goAway(json, upTo: highestStream)
            // Once it is written, the library drops the requests behind it that have arrived already.
            return .write
        case .drop:
            guard discard(post, request, as: .lostByDrill) else { return nil }
            endCatch(request, withoutAnswer: "a drill loses it: the provider gets no answer")
            return .drop
        case .shutdown:
            guard discard(post, request, as: .refusedByDrill) else { return nil }
            ending.drill = ending.drill ?? verdict.cause
            answer(request, refusing: refusal(.shutdown, by: verdict.cause, at: post.notification.received))
            return .stop
        }
        return nil
    }

    /// Answers with a drill's own status and reason, and nothing that APNs would add.
    private func answer(
        _ request: PendingRequest,
        status: Int,
        reason: String?,
        retryAfter: Duration?,
        _ why: String
    ) {
        let status = ReplyStatus(rawValue: status)
        let retryAfter = retryAfter.map { Int($0.components.seconds) }
        service.metrics.countDrilled(status)
        request.answer.id = replyID(request)
        request.caught?.message.sender = authorization.caughtSender
        endCatch(request, status, reason: reason, why, retryAfter: retryAfter)
        var reply = Reply(status: status)
        let explanation = request.answer.explains ? why : nil
        if let reason {
            reply.body = Reply.body(reason: reason, explanation: explanation)
        } else if let explanation {
            reply.explanation = Array(explanation.utf8)
        }
        if let retryAfter { reply.retryAfter = Array("\(retryAfter)".utf8) }
        send(reply, to: request)
    }

    /// Journals a notification that a drill discards.
    /// - Returns: false if the registration is gone; the request is refused for that then.
    private func discard(_ post: Post, _ request: PendingRequest, as state: JournalState) -> Bool {
        switch service.sink.discard(Envelope(post.notification, generation: post.generation), as: state) {
        case .refused(let refusalReason, let since):
            refuse(request, Refusal(refusalReason, since: since))
            return false
        case .accepted, .pending:
            return true
        }
    }

    private func why(_ drill: String) -> String {
        "\(drill) refuses it; the notification itself is correct, and Herald does not deliver it"
    }

    private func refusal(_ refusalReason: RefusalReason, by drill: String, at now: WallTime) -> Refusal {
        Refusal(
            refusalReason,
            why(drill),
            since: refusalReason == .unregistered ? now : nil
        )
    }
}
