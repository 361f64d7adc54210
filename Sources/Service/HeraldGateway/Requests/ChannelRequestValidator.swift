import HeraldMailbox
import HeraldModel
import HeraldTrust

/// Turns a request about channels into an operation for the channel service, an answer, or a refusal.
///
/// A request with several faults is refused for the first in the order of the checks.
struct ChannelRequestValidator {
    enum Result {
        /// A channel to make, and the use that claims the app's topic; nil if there is nothing to claim.
        case create(App, MessageStoragePolicy, TopicUse?)
        case delete(ChannelID, App)
        /// A broadcast, and the use that claims the app's topic.
        case publish(BroadcastPost, TopicUse?)
        /// A broadcast whose payload no app can read, accepted because the rules say so.
        case unreadable(BroadcastPost, TopicUse?)
        /// The body of the answer.
        case answer([UInt8])
        /// The body of an answer with all channels of an app, once this node knows those that other nodes made.
        case listing([UInt8])
        /// Nothing of the request was taken.
        case refused(Refusal)
    }

    let admission: Admission
    let rules: RequestRules
    /// nil for a service without channels.
    let channels: ChannelService?

    /// Validates a request of an operation; the body of a broadcast moves out of the request.
    ///
    /// `id` is the `apns-request-id` of the answer: the provider's, if it is valid. `environment` is the one that the
    /// client selected.
    func decide(
        _ request: PendingRequest,
        _ route: RequestRoute,
        id: NotificationID,
        _ authorization: inout ProviderAuthorization,
        environment: PushEnvironment,
        ids: inout IdentifierSource,
        now: WallTime
    ) -> Result {
        let fields = request.fields
        if case .refused(let refusal) = route { return .refused(refusal) }
        guard let bundle = route.bundle else { return .refused(Refusal(.badPath, "there is nothing at this path")) }
        if let refusal = RequestParser.duplicates(fields) { return .refused(refusal) }
        if let refusal = authorization.authenticate(fields, environment, admission, now: now) {
            return .refused(refusal)
        }
        if let refusal = ChannelParser.checkRequestID(fields) { return .refused(refusal) }
        let use: TopicUse?
        do throws(Refusal) {
            use = try authorization.checkBundle(bundle, environment, admission)
        } catch {
            return .refused(error)
        }
        guard let channels, rules.broadcastApps.contains(bundle) else {
            return .refused(
                Refusal(
                    .featureNotEnabled,
                    "this service does not broadcast for \(bundle); see its setting broadcast-apps"
                )
            )
        }
        guard !request.received.isDropped else { return .refused(.outOfBodyMemory) }
        let app = App(topic: bundle, environment: environment)
        let isRegistered = use != nil && admission.isRegistered(bundle)
        // Before a device has the app, a claim would only keep the name from others.
        let claim = isRegistered ? use : nil
        // While no team owns the topic, its channels are listed for the team that made the first one. Other keys reach those
        // whose identifiers they know, and none once a device has the app.
        let isOthers = use.map { !$0.isNamed && admission.team(thatBrought: app) != $0.team } ?? false
        let isStranger = isOthers && isRegistered
        func channel(_ inPath: String?) -> Swift.Result<BroadcastChannel, Refusal> {
            ChannelParser.channelID(fields, inPath: inPath).flatMap {
                find($0, of: app, in: channels, isStranger: isStranger)
            }
        }
        switch route {
        case .createChannel:
            return ChannelParser.storage(request.body, byteCount: request.received.byteCount)
                .asResult { .create(app, $0, claim) }
        case .readChannel(_, let id):
            return channel(id).asResult { .answer(ChannelParser.description(of: $0)) }
        case .deleteChannel(_, let id):
            return channel(id).asResult { .delete($0.id, app) }
        case .listChannels:
            return .listing(isOthers ? Array("{\"channels\":[]}".utf8) : channels.listing(of: app))
        case .broadcast:
            let uniqueID = ids.identifier()
            do throws(Refusal) {
                return try broadcast(
                    request,
                    to: app,
                    in: channels,
                    isStranger: isStranger,
                    claim: claim,
                    id: id,
                    uniqueID: uniqueID,
                    sender: authorization.sender,
                    now: now
                )
            } catch {
                return .refused(error)
            }
        case .notification, .refused:
            return .refused(Refusal(.badPath, "there is nothing at this path"))
        }
    }

    private func find(
        _ id: ChannelID?,
        of app: App,
        in channels: ChannelService,
        isStranger: Bool
    ) -> Swift.Result<BroadcastChannel, Refusal> {
        guard !isStranger, let id, let channel = channels.channel(id, of: app) else {
            return .failure(
                Refusal(
                    .channelNotRegistered,
                    "\(app.topic) has no such channel in \(app.environment.rawValue)",
                    // Whether the topic has an owner is a matter of trust.
                    restsOn: isStranger ? .trust : .channels
                )
            )
        }
        return .success(channel)
    }

    private func broadcast(
        _ request: PendingRequest,
        to app: App,
        in channels: ChannelService,
        isStranger: Bool,
        claim: TopicUse?,
        id: NotificationID,
        uniqueID: NotificationID,
        sender: SenderNumber,
        now: WallTime
    ) throws(Refusal) -> Result {
        let fields = request.fields
        let channelID = try ChannelParser.channelID(fields, inPath: nil).get()
        if let refusal = ChannelParser.checkPushType(fields) { throw refusal }
        let expiration = try ChannelParser.expiration(fields).get()
        let priority = try ChannelParser.priority(fields).get()
        let channel = try find(channelID, of: app, in: channels, isStranger: isStranger).get()
        guard channel.storage == .newest || expiration == .once else {
            let why = "apns-expiration must be 0, because the channel stores nothing (message-storage-policy 0)"
            throw Refusal(.badExpirationDate, why)
        }
        let isObject = PayloadScanner.survey(request.body).isObject
        let isAccepted = isObject || rules.takesUnreadablePayloads
        if let refusal = ChannelParser.checkPayload(byteCount: request.received.byteCount, isObject: isAccepted) {
            throw refusal
        }
        let payload = request.body
        request.body = []
        let post = BroadcastPost(
            channel: channel.id,
            app: app,
            id: id,
            uniqueID: uniqueID,
            received: now,
            storedUntil: expiration.storedUntil(now: now, longest: channels.longestStorage),
            priority: priority,
            payload: payload,
            sender: sender
        )
        return isObject ? .publish(post, claim) : .unreadable(post, claim)
    }
}

extension Result where Failure == Refusal {
    fileprivate func asResult(_ make: (Success) -> ChannelRequestValidator.Result) -> ChannelRequestValidator.Result {
        switch self {
        case .success(let value): make(value)
        case .failure(let refusal): .refused(refusal)
        }
    }
}
