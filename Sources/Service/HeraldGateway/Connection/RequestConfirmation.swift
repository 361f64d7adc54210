import HeraldMailbox
import HeraldModel

/// Refusals that rest on what other nodes of a cluster may have changed.
extension RequestHandler {
    /// Refuses a request, in a cluster when it is certain that no other node has what is missing here.
    func confirm(_ request: PendingRequest, _ refusal: Refusal) {
        if let part = refusal.restsOn {
            if catchUp(request, part) { return }
            hasRefusedAgain = true
        }
        refuse(request, refusal)
    }

    /// Learns in a cluster what the other nodes have, and then looks at the request again.
    /// - Returns: false if this has been done, or there are no other nodes.
    func catchUp(_ request: PendingRequest, _ part: SharedPart) -> Bool {
        guard let confirmations = service.confirmations, let completions, !request.confirmed.contains(part) else {
            return false
        }
        request.confirmed.append(part)
        // The end of an earlier confirmation is not the end of the request.
        hasRefusedAgain = nil
        session.keepPosted(request)
        let number = request.number
        let isUnderWay = confirmations.confirm(part) { isCaughtUp in
            completions.settle(number, isCaughtUp ? .decideAgain : .refused(.serviceUnavailable))
        }
        if !isUnderWay { refuse(request, Refusal(.serviceUnavailable, Refusal.storeTrouble)) }
        return true
    }

    /// Refuses a request because another team has its topic: in a cluster, that may be so at this node alone.
    func refuseTaken(_ request: PendingRequest, _ refusal: Refusal) {
        refuse(request, service.confirmations == nil ? refusal : FirstUseDecision.undecidedRefusal)
    }
}
