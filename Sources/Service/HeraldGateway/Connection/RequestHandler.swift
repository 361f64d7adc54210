import HeraldMailbox
import HeraldModel
import HeraldTrust
import NIOCore

/// Answers the requests of one provider connection.
///
/// 1. Validates a request (``RequestValidator``, ``ChannelRequestValidator``) and posts its notification or performs its
///    channel operation.
/// 2. Turns completions into replies.
/// 3. Performs drills. A drill never forges a success: a notification that it refuses or loses is in the journal and
///    nowhere else, and a reply that it delays is the true one.
final class RequestHandler {
    /// The effect of a drill on the whole connection.
    enum ConnectionEffect {
        /// Write all pending frames at once.
        case write
        /// Close without a GOAWAY or close_notify, as a network failure does.
        case drop
        /// Stop as when the service stops.
        case stop
    }

    /// The validators for a generation of the rules.
    private struct Validators {
        let request: RequestValidator
        let channel: ChannelRequestValidator
        var generation: UInt64

        init(_ service: ProviderService) {
            generation = service.rules.generation
            request = service.validator
            channel = service.channelValidator
        }
    }

    let service: ProviderService
    let session: HTTP2Session
    let eventLoop: any EventLoop
    private var validators: Validators
    @exclusivity(unchecked) private(set) var authorization: ProviderAuthorization
    private var environment: ConnectionEnvironment
    @exclusivity(unchecked) private var ids = IdentifierSource()
    var delayed = DelayedReplies()
    /// Accepted requests that ``countAccepted()`` has not counted yet, and their credential.
    @exclusivity(unchecked) private var uncounted: (sender: SenderNumber, count: Int) = (.unknown, 0)
    /// The highest stream whose request was looked at.
    private(set) var highestStream: Int32 = 0
    /// Whether a drill has sent GOAWAY, and which one stops the connection, in words.
    var ending: (hasSentGoAway: Bool, drill: String?) = (false, nil)
    /// Whether the request that was looked at again is refused for what no other node has either; nil if it was not refused
    /// before.
    var hasRefusedAgain: Bool? = false
    /// Whether this node may not know of credentials that other nodes have revoked, at the present burst.
    private var isTrustBehind = false
    /// Receives the completions of the connection's notifications; nil once the connection is gone.
    var completions: (any CompletionHandler)?

    init(
        service: ProviderService,
        session: HTTP2Session,
        eventLoop: any EventLoop,
        authorization: ProviderAuthorization,
        environment: ConnectionEnvironment
    ) {
        self.service = service
        self.session = session
        self.eventLoop = eventLoop
        self.authorization = authorization
        self.environment = environment
        validators = Validators(service)
    }

    /// Whether the connection has authenticated its provider.
    var isKnown: Bool { authorization.isKnown }
    /// The provider of the connection's certificate; nil for a connection by token.
    var certificate: ProviderCertificateIdentity? { authorization.certificate }
    /// The number of refused provider tokens, each different from the one before.
    var refusedTokens: Int { authorization.refusedTokens }

    // MARK: - Requests

    /// Prepares for a burst of requests: reloads rules and revalidates what is cached, if they may have changed.
    func beginBurst(_ now: WallTime) {
        if service.rules.isNewer(than: &validators.generation) { validators = Validators(service) }
        authorization.refresh(service.admission, now: now)
        // After the requests were read: their senders cannot know what other nodes do from here on.
        isTrustBehind = service.isBehind(.trust)
    }

    /// Answers a request, now or by its completion.
    func answer(_ request: PendingRequest, _ now: WallTime, isStopping: Bool) -> ConnectionEffect? {
        highestStream = max(highestStream, request.stream.id)
        request.answer.explains =
            validators.request.rules.alwaysExplains || request.fields.value(of: .heraldExplain, is: "1")
        request.answer.isAboutChannels = RequestRoute.isAboutChannels(request.fields)
        guard !isStopping else {
            refuse(request, stopRefusal)
            return nil
        }
        if isTrustBehind, catchUp(request, .trust) { return nil }
        let asked = environment.environment(of: request.fields)
        if service.catcher.isCatching { beginCatch(request, asked, now) }
        guard !request.answer.isAboutChannels else {
            answerAboutChannels(request, asked, now)
            return nil
        }
        switch validators.request.decide(request, &authorization, environment: asked, ids: &ids, now: now) {
        case .refused(let refusal):
            confirm(request, refusal)
        case .notification(let notification, let generation, let use, let hasHerald):
            request.caught?.note(notification)
            let post = Post(notification: notification, generation: generation, environment: asked, use: use)
            if hasHerald { noteUnheededDrill(of: notification, request) }
            do throws(PayloadDrill.Mistake) {
                if service.drills.isOn, let verdict = try verdict(on: post, request, hasHerald: hasHerald) {
                    return drill(post, request, verdict)
                }
                self.post(post, request)
            } catch {
                refuse(request, Refusal(.badPayload, error.text))
            }
        case .unreadable(let notification, let generation, let use):
            request.caught?.note(notification)
            let post = Post(notification: notification, generation: generation, environment: asked, use: use)
            self.post(post, request, discardedAs: .discardedUndeliverable)
        }
        return nil
    }

    func settled(
        _ number: UInt64,
        _ outcome: CompletionOutcome,
        now: NIODeadline,
        isStopping: Bool
    ) -> ConnectionEffect? {
        guard let request = session.request(number), request.phase == .posted else { return nil }
        switch outcome {
        case .accepted: accept(request, now: now)
        case .refused(let refusalReason, let since):
            let isOfToken = refusalReason == .badDeviceToken || refusalReason == .unregistered
            let why = isOfToken ? nil : Refusal.storeTrouble
            refuse(request, Refusal(refusalReason, why, since: since))
        case .unknown: session.leaveUnanswered(request, reset: .internalError)
        case .decideAgain:
            // What was just learned counts.
            authorization.refresh(service.admission, now: service.clock.now())
            hasRefusedAgain = false
            defer { if let hasRefusedAgain { service.confirmations?.ended(isRefused: hasRefusedAgain) } }
            return answer(request, service.clock.now(), isStopping: isStopping)
        }
        return nil
    }

    // MARK: - Notifications

    /// A notification to post.
    struct Post {
        let notification: Notification
        /// The generation of its registration.
        let generation: UInt32
        let environment: PushEnvironment
        /// The use that claims its topic; nil if a team owns it.
        let use: TopicUse?
    }

    func post(_ post: Post, _ request: PendingRequest, discardedAs state: JournalState? = nil) {
        guard var completions else { return }
        let notification = post.notification
        let first = service.admission.begin(post.use, completions: completions)
        switch first {
        case .proceed, .overLimit: break
        case .claim(let completion): completions = completion
        case .taken(let topic):
            return refuseTaken(request, ProviderAuthorization.foreignTopic(topic, authorization.certificate))
        case .undecided:
            return refuse(request, FirstUseDecision.undecidedRefusal)
        }
        request.answer.id = givenID(request) ?? IdentifierText(notification.id)
        if post.environment == .sandbox || validators.request.rules.alwaysSendsUniqueID {
            request.answer.uniqueID = IdentifierText(notification.uniqueID)
        }
        session.keepPosted(request)
        let completion = Completion(handler: completions, number: request.number)
        let envelope = Envelope(notification, generation: post.generation, completion: completion)
        if request.answer.explains || request.caught != nil { request.answer.envelope = envelope }
        let decision =
            if let state {
                service.sink.discard(envelope, as: state)
            } else {
                service.sink.post(envelope)
            }
        switch first.claim?.follow(decision, number: request.number) ?? decision {
        case .accepted: accept(request)
        case .pending: break
        case .refused(let refusalReason, let since): refuse(request, Refusal(refusalReason, since: since))
        }
    }

    private func accept(_ request: PendingRequest, now: NIODeadline? = nil) {
        let accepted = request.answer.acceptance ?? .accepted
        service.metrics.count(accepted.status, after: (now ?? eventLoop.now) - request.begun)
        if uncounted.sender != authorization.sender { countAccepted() }
        uncounted = (authorization.sender, uncounted.count + 1)
        if request.drill != nil { recordUnheededDrill(of: request) }
        guard let envelope = request.answer.envelope else {
            endCatch(request, accepted)
            return send(accepted, to: request)
        }
        let fields = request.fields
        let asksForPast = fields.has(.apnsExpiration) && !fields.value(of: .apnsExpiration, is: "0")
        let drill = request.drill?.unheeded == nil ? "" : UnheededDrill.words
        var reply = accepted
        reply.explanation = Array((Explanation.words(for: envelope, asksForPast: asksForPast) + drill).utf8)
        endCatch(request, reply)
        send(request.answer.explains ? reply : accepted, to: request)
    }

    /// Counts the accepted requests of the credential, before their answers are written: together, because a count reads
    /// the clock and takes a lock.
    func countAccepted() {
        guard uncounted.count > 0 else { return }
        service.admission.count(uncounted.sender, accepted: uncounted.count, at: service.clock.now())
        uncounted.count = 0
    }

    /// Refuses a request, on record.
    ///
    /// A refusal for overload is held back: a provider that repeats it at once would take the machine's time from the store.
    func refuse(_ request: PendingRequest, _ refusal: Refusal) {
        let isOverload = refusal.refusalReason == .serviceUnavailable && service.sink.isOverloaded
        let refusal = isOverload ? Refusal.overload : refusal
        if isOverload { holdBack(request) }
        request.answer.id = replyID(request)
        let now = service.clock.now()
        service.admission.count(authorization.sender, refused: 1, at: now)
        service.sink.refuse(at: now) {
            let asked = environment.environment(of: request.fields)
            return RefusedRequest(request, by: authorization, in: asked, service.admission)
                .line(refusal, service.admission, at: now)
        }
        answer(request, refusing: refusal, retryAfter: isOverload ? DelayedReplies.overloadSeconds : nil)
    }

    func replyID(_ request: PendingRequest) -> IdentifierText {
        request.answer.id ?? givenID(request) ?? IdentifierText(ids.identifier())
    }

    /// Answers with a refusal; `retryAfter` is in seconds, and nil for the default of the reason.
    func answer(_ request: PendingRequest, refusing refusal: Refusal, retryAfter: Int? = nil) {
        service.metrics.count(refusal.refusalReason)
        request.answer.id = replyID(request)
        request.answer.uniqueID = nil
        // A drill withholds acceptances only.
        request.drill?.withholds = nil
        endCatch(request, refusal, retryAfter: retryAfter ?? refusal.refusalReason.retryAfter)
        var reply = Reply(refusal, explains: request.answer.explains)
        if let retryAfter { reply.retryAfter = Array("\(retryAfter)".utf8) }
        // The answer to HEAD has no body (RFC 9110 §9.3.2).
        if request.fields.value(of: .method, is: "HEAD") { reply.body = [] }
        send(reply, to: request)
    }

    /// Sends a reply, unless a drill delays or withholds it.
    func send(_ reply: Reply, to request: PendingRequest) {
        guard let drill = request.drill else { return session.reply(to: request, reply) }
        if let notification = drill.withholds {
            service.sink.record(.answerWithheldByDrill, about: notification)
            return session.leaveUnanswered(request, reset: drill.reset)
        }
        guard delayed.isEnabled, drill.answerAt > eventLoop.now, request.stream.isOpen else {
            return session.reply(to: request, reply)
        }
        session.keepPosted(request)
        delayed.add(reply, to: request.number, due: drill.answerAt)
    }

    /// The provider's own identifier, if it is valid.
    private func givenID(_ request: PendingRequest) -> IdentifierText? {
        request.fields.withValue(of: request.answer.isAboutChannels ? .apnsRequestID : .apnsID) { text in
            NotificationID(utf8: text) == nil ? nil : IdentifierText(copying: text)
        } ?? nil
    }

    // MARK: - Channels and broadcasts

    private func answerAboutChannels(_ request: PendingRequest, _ environment: PushEnvironment, _ now: WallTime) {
        guard let completions else { return }
        if service.isBehind(.channels), catchUp(request, .channels) { return }
        let given = request.fields.withValue(of: .apnsRequestID) { NotificationID(utf8: $0) } ?? nil
        let id = given ?? ids.identifier()
        request.answer.id = givenID(request) ?? IdentifierText(id)
        func perform(
            claiming use: TopicUse? = nil,
            unlessOverLimit isLimited: Bool = false,
            _ operation: (ChannelService, Completion) -> PostDecision
        ) {
            // Without a channel service the validator has refused the request.
            guard let channels = service.channels else { return refuse(request, Refusal(.featureNotEnabled)) }
            let first = service.admission.begin(use, completions: completions)
            switch first {
            case .proceed, .claim: break
            case .taken(let topic):
                return refuseTaken(request, ProviderAuthorization.foreignBundle(topic, authorization.certificate))
            case .overLimit(let topic):
                guard isLimited else { break }
                let why = "no team owns \(topic), and yours owns as many by use as it may: ask the operator for it"
                return confirm(request, Refusal(.cannotCreateChannelConfig, why, restsOn: .trust))
            case .undecided:
                return refuse(request, FirstUseDecision.undecidedRefusal)
            }
            let completion = Completion(handler: first.claim ?? completions, number: request.number)
            hold(request, operation(channels, completion), first.claim)
        }
        switch validators.channel.decide(
            request,
            RequestRoute(request.fields),
            id: id,
            &authorization,
            environment: environment,
            ids: &ids,
            now: now
        ) {
        case .refused(let refusal):
            confirm(request, refusal)
        case .answer(let body):
            answer(request, with: body)
        case .listing(let body):
            // Whose channels they are is a matter of trust.
            guard !catchUp(request, .channels), !catchUp(request, .trust) else { break }
            hasRefusedAgain = nil
            answer(request, with: body)
        case .create(let app, let storage, let use):
            let channel = ChannelID.random()
            request.answer.acceptance = Reply(status: .created, channelID: Array(channel.base64.utf8))
            let team = authorization.team
            perform(claiming: use, unlessOverLimit: true) { channels, completion in
                channels.create(channel, for: app, storage: storage, team: team, completion: completion)
            }
        case .delete(let channel, let app):
            request.answer.acceptance = Reply(status: .noContent)
            perform { $0.delete(channel, of: app, completion: $1) }
        case .publish(let post, let use):
            request.answer.uniqueID = IdentifierText(post.uniqueID)
            perform(claiming: use) { $0.publish(post, completion: $1) }
        case .unreadable(let post, let use):
            request.answer.uniqueID = IdentifierText(post.uniqueID)
            prepare(
                .accepted,
                "discarded: the payload is not a JSON object, so no app could read it; the journal has it",
                request
            )
            perform(claiming: use) { $0.discard(post, as: .discardedUndeliverable, completion: $1) }
        }
    }

    private func answer(_ request: PendingRequest, with body: [UInt8]) {
        prepare(Reply(status: .ok, body: body), "the state at this moment", request)
        accept(request)
    }

    /// Sets the reply of a request after its acceptance, with an explanation if the provider asks for one.
    private func prepare(_ reply: Reply, _ explanation: StaticString, _ request: PendingRequest) {
        var reply = reply
        if request.answer.explains { reply.explanation = explanation.withUTF8Buffer { Array($0) } }
        request.answer.acceptance = reply
    }

    /// Answers as decided, or waits for the completion, which comes on a later turn of the loop.
    private func hold(_ request: PendingRequest, _ decision: PostDecision, _ claim: FirstUseCompletion?) {
        session.keepPosted(request)
        switch decision {
        case .accepted:
            prepare(.accepted, "sent: the channel stores nothing, and Herald sends it to the subscribers now", request)
        case .pending:
            if request.answer.acceptance?.explanation == nil {
                prepare(request.answer.acceptance ?? .accepted, "stored", request)
            }
        case .refused: break
        }
        switch claim?.follow(decision, number: request.number) ?? decision {
        case .accepted: accept(request)
        case .pending: break
        case .refused(let refusalReason, _): refuse(request, Refusal(channels: refusalReason))
        }
    }
}
