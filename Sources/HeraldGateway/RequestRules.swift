/// What an operator may set about requests.
package struct RequestRules: Sendable {
    /// Whether a payload that is not a JSON object is taken, as APNs takes it; the journal then says `discarded
    /// (undeliverable payload)`.
    ///
    /// Otherwise it is refused with `BadPayload`, which is Herald's own.
    package var takesUnreadablePayloads = false
    /// Whether successes carry `apns-unique-id` in production too; APNs sends it in its development environment only.
    package var alwaysSendsUniqueID = false

    /// For which apps there are channels and broadcasts; all other providers are answered `FeatureNotEnabled`.
    package var broadcastApps = BroadcastApps.all

    package init() {}
}
