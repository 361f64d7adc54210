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
        case nil:
            self.post(post, request)
        case .refuse(let refusalReason, let retryAfter):
            guard discard(post, request, as: .refusedByDrill) else { return nil }
            let refusal = refusal(refusalReason, by: verdict.cause, at: post.notification.received)
            answer(request, refusing: refusal, retryAfter: retryAfter)
        case .silence(isAccepted: false):
            guard discard(post, request, as: .lostByDrill) else { return nil }
            endCatchWithoutAnswer(request)
            session.leaveUnanswered(request)
        case .silence(isAccepted: true):
            request.beginDrill().withholds = post.notification
            self.post(post, request)
        case .goAway(let refusalReason):
            self.post(post, request)
            guard !ending.hasSentGoAway else { return nil }
            ending.hasSentGoAway = true
            session.goAway(refusalReason.map { Reply.body($0) } ?? [], upTo: highestStream)
            // Once it is written, the library drops the requests behind it that have arrived already.
            return .write
        case .drop:
            guard discard(post, request, as: .lostByDrill) else { return nil }
            endCatchWithoutAnswer(request)
            return .drop
        case .shutdown:
            guard discard(post, request, as: .refusedByDrill) else { return nil }
            ending.drill = ending.drill ?? verdict.cause
            answer(request, refusing: refusal(.shutdown, by: verdict.cause, at: post.notification.received))
            return .stop
        }
        return nil
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

    private func refusal(_ refusalReason: RefusalReason, by drill: String, at now: WallTime) -> Refusal {
        Refusal(
            refusalReason,
            "\(drill) refuses it; the notification itself is correct, and Herald does not deliver it",
            since: refusalReason == .unregistered ? now : nil
        )
    }
}
