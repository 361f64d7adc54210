import HeraldMailbox
import HeraldModel
import HeraldTrust
import HeraldWire
import Logging
import NIOCore

/// Notifications of a binary connection, and their refusals.
extension BinaryConnection {
    func take(_ request: BinaryNotification, as number: UInt64, _ now: WallTime) {
        guard let authorization, let handler = membership?.handler else { return }
        if catchUps.isTrustBehind, catchUp(.trust, request, number, for: handler) { return }
        func post(_ use: TopicUse?, _ send: (Completion) -> PostDecision) -> PostDecision {
            let first = validator.admission.begin(use, completions: handler)
            if case .undecided = first { return .refused(.serviceUnavailable, since: nil) }
            // Without a claim it is posted, too: the certificate names its topic.
            let decision = send(Completion(handler: first.claim ?? handler, number: number))
            return first.claim?.follow(decision, number: number) ?? decision
        }
        let decision: PostDecision
        switch validator.decide(request, authorization, ids: &ids, now: now) {
        case .refused(let refusal):
            if let part = refusal.restsOn {
                if catchUp(part, request, number, for: handler) { return }
                if catchUps.waiting.removeValue(forKey: number) != nil { service.confirmations?.ended(isRefused: true) }
            }
            return refuse(number, refusal, request)
        case .notification(let notification, let generation, let use, let hasHerald):
            caught[number]?.note(notification)
            inFlight.note(number, posted: InFlightNotifications.Posted(notification))
            decision = post(use) { service.sink.post(Envelope(notification, generation: generation, completion: $0)) }
            if hasHerald, UnheededDrill.isIn(notification.payload) {
                caught[number]?.message.explanation = "accepted\(UnheededDrill.wordsOfBinary)"
                if case .refused = decision { break }
                service.sink.record(.drillUnheeded, about: notification)
            }
        case .unreadable(let notification, let generation, let use):
            caught[number]?.note(notification)
            inFlight.note(number, posted: InFlightNotifications.Posted(notification))
            decision = post(use) { completion in
                let envelope = Envelope(notification, generation: generation, completion: completion)
                return service.sink.discard(envelope, as: .discardedUndeliverable)
            }
        }
        switch decision {
        case .pending: break
        case .accepted: settled(number, .accepted, now: .now())
        case .refused(let refusalReason, let since):
            refuse(number, Refusal(refusalReason, since: since), request)
        }
    }

    /// Learns in a cluster what the other nodes have, and then looks at the notification again.
    /// - Returns: false if this has been done, or there are no other nodes.
    private func catchUp(
        _ part: SharedPart,
        _ request: BinaryNotification,
        _ number: UInt64,
        for handler: any CompletionHandler
    ) -> Bool {
        guard let confirmations = service.confirmations, catchUps.waiting[number]?.confirmed.contains(part) != true
        else {
            return false
        }
        catchUps.waiting[number, default: (request, [])].confirmed.append(part)
        let isUnderWay = confirmations.confirm(part) { isCaughtUp in
            handler.settle(number, isCaughtUp ? .decideAgain : .refused(.serviceUnavailable))
        }
        if !isUnderWay {
            refuse(number, Refusal(.serviceUnavailable), catchUps.waiting.removeValue(forKey: number)?.request)
        }
        return true
    }

    /// Refuses an open notification, on record.
    func refuse(_ number: UInt64, _ refusal: Refusal, _ request: BinaryNotification?) {
        let (posted, status) = (inFlight.posted(number), refusal.refusalReason.binaryStatus)
        guard inFlight.settle(number, refusedWith: status) else { return }
        if let draft = caught[number] {
            draft.message.explanation = refusal.why
            draft.message.slot = posted?.slot ?? request?.token.own.flatMap { service.admission.slot(of: $0) }
            endCatch(number, .refused(refusal.refusalReason))
        }
        service.logger.debug("notification refused", metadata: ["reason": "\(refusal.why)"])
        service.metrics.count(status)
        record(refusal, request, posted, identifier: request?.identifier)
    }

    func record(
        _ refusal: Refusal,
        _ request: BinaryNotification? = nil,
        _ posted: InFlightNotifications.Posted? = nil,
        identifier: UInt32?
    ) {
        guard let authorization else { return }
        let (now, admission) = (service.clock.now(), service.admission)
        service.sink.refuse(at: now) {
            RefusedRequest(
                request,
                posted: posted,
                identifier: identifier,
                by: authorization,
                ids: &ids,
                admission
            ).line(refusal, admission, at: now)
        }
    }

    func refuse(_ reference: Reference, _ status: BinaryStatus) {
        inFlight.refuse(reference, status)
        service.metrics.count(status)
    }
}
