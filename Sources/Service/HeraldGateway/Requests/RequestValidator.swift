import HeraldModel
import HeraldTrust

/// Turns a request into a notification or a refusal.
///
/// A request with several faults is refused for the first in the order of the checks. A class, because each request would
/// copy a struct with all of its references.
final class RequestValidator: Sendable {
    enum Result {
        /// A notification, the generation of its registration, the use that claims its topic, and whether the payload has a
        /// member `herald`.
        case notification(Notification, generation: UInt32, TopicUse?, hasHerald: Bool)
        /// A notification whose payload no app can read, accepted because the rules say so.
        case unreadable(Notification, generation: UInt32, TopicUse?)
        /// Nothing of the request was taken.
        case refused(Refusal)
    }

    let admission: Admission
    let rules: RequestRules
    /// Maximum storage time of a notification.
    let longestStorage: Duration

    init(admission: Admission, rules: RequestRules, longestStorage: Duration) {
        self.admission = admission
        self.rules = rules
        self.longestStorage = longestStorage
    }

    /// Validates a request, whose body moves into the notification; the client has selected `environment`.
    func decide(
        _ request: PendingRequest,
        _ authorization: inout ProviderAuthorization,
        environment: PushEnvironment,
        ids: inout IdentifierSource,
        now: WallTime
    ) -> Result {
        let fields = request.fields
        if let refusal = RequestParser.route(fields) { return .refused(refusal) }
        if let refusal = authorization.authenticate(fields, environment, admission, now: now) {
            return .refused(refusal)
        }
        if let refusal = RequestParser.tokenIsMissing(fields) { return .refused(refusal) }
        var parsed = RequestParser.Fields()
        if let refusal = RequestParser.read(fields, into: &parsed) { return .refused(refusal) }
        let grant: ProviderAuthorization.Grant
        switch authorization.grant(fields, environment, declared: parsed.pushType, admission) {
        case .success(let given): grant = given
        case .failure(let refusal): return .refused(refusal)
        }
        let kind = parsed.pushType ?? grant.kind
        guard !request.received.isDropped else { return .refused(.outOfBodyMemory) }
        if let refusal = RequestParser.checkLength(request.received.byteCount, kind: kind) { return .refused(refusal) }
        let payload = PayloadScanner.survey(request.body)
        guard payload.isObject || rules.takesUnreadablePayloads else { return .refused(.unreadable) }
        switch admission.open(RequestParser.token(fields), for: grant.app, number: grant.number) {
        case .refused(let refusal):
            return .refused(refusal)
        case .slot(let contents):
            let isSilent = payload.isSilent && parsed.pushType == nil && kind == .alert
            // A payload that only wakes its app is a background notification, whatever the provider declares. Priority 10 is
            // forbidden for it ("Sending notification requests to APNs"), but many older providers send 10.
            if isSilent, parsed.priority == .immediate { parsed.priority = .conserving }
            let body = request.body
            request.body = []
            let notification = Notification(
                id: parsed.id ?? ids.identifier(),
                uniqueID: ids.identifier(),
                slot: contents.slot,
                received: now,
                storedUntil: parsed.expiration.storedUntil(now: now, longest: longestStorage),
                priority: parsed.priority,
                pushType: isSilent ? .background : kind,
                collapseID: parsed.collapseID,
                payload: body,
                sender: authorization.sender
            )
            return payload.isObject
                ? .notification(
                    notification,
                    generation: contents.generation,
                    grant.use,
                    hasHerald: payload.hasHerald
                )
                : .unreadable(notification, generation: contents.generation, grant.use)
        }
    }
}
