import HeraldMailbox
import HeraldModel

/// One request: who asks, for what, to whom.
///
/// What comes out is a notification or a refusal.
///
/// The order of its questions is the order in which a request with several faults is refused.
struct RequestIntake {
    /// What a request came to.
    enum Result {
        /// A notification for a registration of that generation.
        case notification(Notification, generation: UInt32)
        /// A notification that no app could read, which is taken all the same.
        case unreadable(Notification, generation: UInt32)
        case refused(Refusal)
    }

    let admission: Admission
    let rules: RequestRules
    /// How long a notification may be stored at the longest.
    let longestStorage: Duration

    /// Decides about a request.
    ///
    /// - Parameters:
    ///   - slot: The request; its body moves into the notification.
    ///   - standing: What its connection has shown.
    ///   - environment: What the client asked for by name.
    ///   - ids: Makes the identifiers that the provider did not.
    ///   - now: When the request was complete.
    /// - Returns: A notification, or why there is none.
    func decide(
        _ slot: RequestSlot,
        _ standing: inout ProviderStanding,
        environment: PushEnvironment,
        ids: inout IdentifierSource,
        now: WallTime
    ) -> Result {
        let fields = slot.fields
        if let refusal = RequestParser.route(fields) { return .refused(refusal) }
        if let refusal = standing.authenticate(fields, environment, admission, now: now) { return .refused(refusal) }
        if let refusal = RequestParser.tokenIsMissing(fields) { return .refused(refusal) }
        var request = RequestParser.Fields()
        if let refusal = RequestParser.read(fields, into: &request) { return .refused(refusal) }
        let grant: ProviderStanding.Grant
        switch standing.grant(fields, environment, declared: request.pushType, admission) {
        case .success(let given): grant = given
        case .failure(let refusal): return .refused(refusal)
        }
        let kind = request.pushType ?? grant.kind
        guard !slot.isBodyDropped else { return .refused(Refusal(.serviceUnavailable, PostRefusal.noRoom)) }
        if let refusal = RequestParser.check(
            slot.body,
            byteCount: slot.bodyByteCount,
            kind: kind,
            takesAnything: rules.takesUnreadablePayloads
        ) {
            return .refused(refusal)
        }
        switch admission.open(RequestParser.token(fields), for: grant.app, number: grant.number) {
        case .refused(let refusal):
            return .refused(refusal)
        case .slot(let contents):
            let isReadable = !rules.takesUnreadablePayloads || RequestParser.isObject(slot.body)
            let isSilent = request.pushType == nil && kind == .alert && PayloadScanner.isSilent(slot.body)
            // What only wakes its app is a background notification, whether its provider knows the word or not; it has
            // never had priority 10 ("Sending notification requests to APNs"), and many who say nothing do say 10.
            if isSilent, request.priority == .immediate { request.priority = .conserving }
            let notification = notification(slot, request, isSilent ? .background : kind, contents.slot, &ids, now)
            return isReadable
                ? .notification(notification, generation: contents.generation)
                : .unreadable(notification, generation: contents.generation)
        }
    }

    private func notification(
        _ slot: RequestSlot,
        _ request: RequestParser.Fields,
        _ kind: PushType,
        _ place: Slot,
        _ ids: inout IdentifierSource,
        _ now: WallTime
    ) -> Notification {
        let payload = slot.body
        slot.body = []
        return Notification(
            id: request.id ?? ids.identifier(),
            uniqueID: ids.identifier(),
            slot: place,
            received: now,
            storedUntil: request.expiration.storedUntil(now: now, longest: longestStorage),
            priority: request.priority,
            pushType: kind,
            collapseID: request.collapseID,
            payload: payload
        )
    }
}
