import HeraldMailbox
import HeraldModel

/// One request about channels: who asks, for which app, what for.
///
/// What comes out is an order for the channel office, an answer, or a refusal. The order of its questions is the order
/// in which a request with several faults is refused.
struct ChannelIntake {
    /// What a request came to.
    enum Result {
        case create(App, MessageStoragePolicy)
        case delete(ChannelID, App)
        case publish(BroadcastPost)
        /// A broadcast that no app could read, which is taken all the same.
        case unreadable(BroadcastPost)
        /// The answer's body.
        case answer([UInt8])
        case refused(Refusal)
    }

    let admission: Admission
    let rules: RequestRules
    /// nil where there are no channels at all.
    let office: ChannelOffice?

    /// Decides about a request.
    ///
    /// - Parameters:
    ///   - slot: The request; the body of a broadcast moves out of it.
    ///   - route: What its method and path say.
    ///   - id: What the answer carries as `apns-request-id`: the provider's own where it gave a good one.
    ///   - standing: What its connection has shown.
    ///   - environment: What the client asked for by name.
    ///   - ids: Makes identifiers.
    ///   - now: When the request was complete.
    /// - Returns: An order, an answer, or why there is none.
    func decide(
        _ slot: RequestSlot,
        _ route: RequestRoute,
        id: NotificationID,
        _ standing: inout ProviderStanding,
        environment: PushEnvironment,
        ids: inout IdentifierSource,
        now: WallTime
    ) -> Result {
        let fields = slot.fields
        if case .refused(let refusal) = route { return .refused(refusal) }
        guard let bundle = route.bundle else { return .refused(Refusal(.badPath, "the path leads nowhere")) }
        if let refusal = RequestParser.duplicates(fields) { return .refused(refusal) }
        if let refusal = standing.authenticate(fields, environment, admission, now: now) { return .refused(refusal) }
        if let refusal = ChannelParser.checkRequestID(fields) { return .refused(refusal) }
        if let refusal = standing.checkBundle(bundle, environment, admission) { return .refused(refusal) }
        guard let office, rules.broadcastApps.contains(bundle) else {
            return .refused(
                Refusal(.featureNotEnabled, "this service does not broadcast for \(bundle); see its broadcast-apps")
            )
        }
        guard !slot.isBodyDropped else { return .refused(Refusal(.serviceUnavailable, PostRefusal.noRoom)) }
        let app = App(topic: bundle, environment: environment)
        switch route {
        case .createChannel:
            return ChannelParser.storage(slot.body, byteCount: slot.bodyByteCount).asResult { .create(app, $0) }
        case .readChannel(_, let id):
            return channel(fields, id, app, office).asResult { .answer(ChannelParser.description(of: $0)) }
        case .deleteChannel(_, let id):
            return channel(fields, id, app, office).asResult { .delete($0.id, app) }
        case .listChannels:
            return .answer(office.listing(of: app))
        case .broadcast:
            return broadcast(slot, app, id, office, &ids, now)
        case .notification, .refused:
            return .refused(Refusal(.badPath, "the path leads nowhere"))
        }
    }

    private func channel(
        _ fields: RequestFields,
        _ inPath: String?,
        _ app: App,
        _ office: ChannelOffice
    ) -> Swift.Result<BroadcastChannel, Refusal> {
        switch ChannelParser.channelID(fields, inPath: inPath) {
        case .failure(let refusal): .failure(refusal)
        case .success(let id): find(id, app, office)
        }
    }

    private func find(_ id: ChannelID?, _ app: App, _ office: ChannelOffice) -> Swift.Result<BroadcastChannel, Refusal>
    {
        guard let id, let channel = office.channel(id, of: app) else {
            return .failure(
                Refusal(.channelNotRegistered, "\(app.topic) has no such channel in \(app.environment.rawValue)")
            )
        }
        return .success(channel)
    }

    private func broadcast(
        _ slot: RequestSlot,
        _ app: App,
        _ id: NotificationID,
        _ office: ChannelOffice,
        _ ids: inout IdentifierSource,
        _ now: WallTime
    ) -> Result {
        let fields = slot.fields
        let channelID: ChannelID?
        switch ChannelParser.channelID(fields, inPath: nil) {
        case .failure(let refusal): return .refused(refusal)
        case .success(let found): channelID = found
        }
        if let refusal = ChannelParser.checkPushType(fields) { return .refused(refusal) }
        let expiration: Expiration
        switch ChannelParser.expiration(fields) {
        case .failure(let refusal): return .refused(refusal)
        case .success(let found): expiration = found
        }
        let priority: Priority
        switch ChannelParser.priority(fields) {
        case .failure(let refusal): return .refused(refusal)
        case .success(let found): priority = found
        }
        let channel: BroadcastChannel
        switch find(channelID, app, office) {
        case .failure(let refusal): return .refused(refusal)
        case .success(let found): channel = found
        }
        guard channel.storage == .newest || expiration == .once else {
            return .refused(
                Refusal(.badExpirationDate, "apns-expiration must be 0: the channel's policy is to store nothing")
            )
        }
        let isObject = RequestParser.isObject(slot.body)
        if let refusal = ChannelParser.checkPayload(
            byteCount: slot.bodyByteCount,
            isObject: isObject || rules.takesUnreadablePayloads
        ) {
            return .refused(refusal)
        }
        let payload = slot.body
        slot.body = []
        let post = BroadcastPost(
            channel: channel.id,
            app: app,
            id: id,
            uniqueID: ids.identifier(),
            received: now,
            storedUntil: expiration.storedUntil(now: now, longest: office.longestStorage),
            priority: priority,
            payload: payload
        )
        return isObject ? .publish(post) : .unreadable(post)
    }
}

extension Result where Failure == Refusal {
    fileprivate func asResult(_ make: (Success) -> ChannelIntake.Result) -> ChannelIntake.Result {
        switch self {
        case .success(let value): make(value)
        case .failure(let refusal): .refused(refusal)
        }
    }
}
