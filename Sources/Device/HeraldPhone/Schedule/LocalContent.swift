import HeraldJSON

extension LocalNotification {
    /// The reason why a payload of so many bytes cannot be a local notification's, with the remedy; nil if it can.
    ///
    /// Nil is a payload that is not JSON, or nested too deep.
    static func fault(of payload: JSON?, bytes: Int, limits: PhoneLimits = PhoneLimits()) -> String? {
        guard let payload, payload.members != nil else {
            return
                "the payload must be a JSON object of at most \(JSON.Rules.payload.maximumDepth) levels: {\"aps\":{…}}"
        }
        guard let aps = payload.members?["aps"]?.members else {
            return "the payload of a local notification needs the dictionary \"aps\""
        }
        for key in ["content-available", "mutable-content"] where aps[key] != nil {
            return "remove \"\(key)\": only a remote notification can have it"
        }
        guard ["alert", "badge", "sound"].contains(where: { aps[$0].map { $0 != .null } ?? false }) else {
            return "a local notification needs \"alert\", \"badge\" or \"sound\" in \"aps\""
        }
        if let badge = aps["badge"], badge != .null, badge.badge == nil {
            return "\"badge\" must be a whole number from 0 to \(PhoneAction.highestBadge)"
        }
        return bytes <= limits.payloadBytes ? nil : "the payload has \(bytes) bytes: \(limits.payloadBytes) is the most"
    }
}
