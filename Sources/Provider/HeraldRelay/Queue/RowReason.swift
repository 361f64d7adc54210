/// A reason that the relay itself writes into a row.
///
/// All others are the service's own. `docs/relay.md` has the table.
package enum RowReason: String, CaseIterable, Sendable {
    // MARK: - What is wrong with a row

    case badCollapseID = "BadCollapseId"
    case badDeviceToken = "BadDeviceToken"
    case badDeviceTime = "BadDeviceTime"
    case badEnvironment = "BadEnvironment"
    case badExpirationDate = "BadExpirationDate"
    case badGiveUpAt = "BadGiveUpAt"
    case badMessageID = "BadMessageId"
    case badParameters = "BadParameters"
    case badPayload = "BadPayload"
    case badPriority = "BadPriority"
    case badSendAfter = "BadSendAfter"
    case badService = "BadService"
    case badTemplate = "BadTemplate"
    case badTimeQueued = "BadTimeQueued"
    case badTopic = "BadTopic"
    case badUserName = "BadUserName"
    case collapseIDNotCarried = "CollapseIdNotCarried"
    case invalidPushType = "InvalidPushType"
    case missingDeviceToken = "MissingDeviceToken"
    case missingParameter = "MissingParameter"
    case missingTopic = "MissingTopic"
    case noDevice = "NoDevice"
    case noLanguage = "NoLanguage"
    case payloadEmpty = "PayloadEmpty"
    case payloadTooLarge = "PayloadTooLarge"
    case priorityNotCarried = "PriorityNotCarried"
    case pushTypeNotCarried = "PushTypeNotCarried"
    case tooManyTokens = "TooManyTokens"
    case unknownTemplate = "UnknownTemplate"
    case unregistered = "Unregistered"

    // MARK: - What keeps a row from being sent

    case badAnswer = "BadAnswer"
    case badCredential = "BadCredential"
    case badRequest = "BadRequest"
    case giveUpAt = "GiveUpAt"
    case noCredential = "NoCredential"
    case overloaded = "Overloaded"
    case partsDeleted = "PartsDeleted"
    case proxyRefused = "ProxyRefused"
    case sentInPart = "SentInPart"
    case stopped = "Stopped"
    case store = "Store"
    case timedOut = "TimedOut"
    case uncertain = "Uncertain"
    case unreachable = "Unreachable"
    case untrusted = "Untrusted"

    /// The meaning, in one sentence that names the column.
    ///
    /// It is a row's `detail` if the relay has nothing more exact to say.
    package var meaning: String {
        switch self {
        case .badAnswer: "the service's answer is not one of APNs; check the address in `service`"
        case .badCollapseID: "`collapse_id` must have 1 to 64 bytes of printable text, without a space at either end"
        case .badCredential: "the relay cannot use the app's `certificate`, `key` or `ca`"
        case .badDeviceToken:
            "`device_token` must have 2 to 200 hexadecimal digits, two for each byte, or be a JSON array of such texts"
        case .badDeviceTime:
            "`registered_at`, `dead_at` or `held_at` of the token in `devices` is not a time like 2026-11-21 02:34:56"
        case .badEnvironment: "`environment`, of the row or of its device, must be production or sandbox"
        case .badExpirationDate:
            "`expiration` must be whole seconds since 1970, at most ten years ahead, or 0 for one attempt"
        case .badGiveUpAt: "`give_up_at` must be a time like 2026-11-21 02:34:56, at most ten years ahead"
        case .badMessageID: "`apns_id` must be a UUID; only the relay writes this column"
        case .badParameters:
            "`parameters` must be a JSON object of texts, numbers, booleans and nulls, with at most 16 KiB"
        case .badPayload: "`payload` must be a JSON object"
        case .badPriority: "`priority` must be 10, 5 or 1"
        case .badRequest: "the client library cannot send this notification"
        case .badSendAfter: "`send_after` must be a time like 2026-11-21 02:34:56, at most ten years ahead"
        case .badService: "`service`, of the row or of its device, must be a text of at most 512 bytes"
        case .badTemplate: "`template` must be a text of at most 512 bytes, in a row without `payload`"
        case .badTimeQueued: "`time_queued` must be a time like 2026-11-21 02:34:56"
        case .badTopic: "`topic` must be an app like com.example.chat"
        case .badUserName: "`user_name` must be a text of at most 512 bytes, in a row without `device_token`"
        case .collapseIDNotCarried: "the binary interface has no `collapse_id`"
        case .giveUpAt: "`give_up_at` was over, or without it `retry-for`"
        case .invalidPushType: "`push_type` must be a push type of APNs, like alert or background"
        case .missingDeviceToken: "the row has neither `device_token` nor `user_name`"
        case .missingParameter: "`parameters` lacks one that the template names"
        case .missingTopic: "the row has no `topic`, and `apps` have more than one"
        case .noCredential: "none of `apps` has the row's topic, environment and service"
        case .noDevice: "`devices` has no live token for this `user_name` and `topic`"
        case .noLanguage: "the template has neither a language of the device nor the language ''"
        case .overloaded: "too many notifications wait for the service"
        case .partsDeleted: "another program deleted the rows of the tokens"
        case .payloadEmpty: "the row has neither `payload` nor `template`"
        case .payloadTooLarge: "the payload has more bytes than its push type or the interface may have"
        case .priorityNotCarried: "the binary interface has no `priority` 1"
        case .pushTypeNotCarried: "over the binary interface the service derives another `push_type`"
        case .proxyRefused: "the proxy does not let the relay reach the service, or refuses its password"
        case .sentInPart: "some of the tokens were refused; `push_outcomes` has each"
        case .stopped: "the relay stopped"
        case .store: "the queue's database failed while the relay read the row's template or devices"
        case .timedOut: "the service did not answer in time"
        case .tooManyTokens: "`device_token` must be an array of at most 1,000 tokens"
        case .uncertain: "the row may have been sent, and no journal knows yet"
        case .unknownTemplate: "`push_templates` has no template of this name"
        case .unreachable: "the relay cannot connect to the service, or the connection broke"
        case .unregistered: "the token is dead, as `dead_at` in `devices` says; the app was removed"
        case .untrusted: "the relay does not trust the service's certificate (see `ca`), or the service that of the app"
        }
    }
}

/// A row's reason, and what it means in this row.
package struct RowError: Error, Hashable {
    package let reason: RowReason
    /// One sentence for people, in `push_queue.detail`.
    package let detail: String

    package init(_ reason: RowReason, _ detail: String? = nil) {
        self.reason = reason
        self.detail = detail ?? reason.meaning
    }
}

extension RowError: CustomStringConvertible {
    /// Reason and sentence, as `Untrusted: …`.
    package var description: String { "\(reason.rawValue): \(detail)" }
}
