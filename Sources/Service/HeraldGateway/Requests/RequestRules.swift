/// Operator settings for requests.
package struct RequestRules: Sendable {
    /// Whether to accept a payload that is not a JSON object, as APNs does.
    ///
    /// The journal then says `discarded (undeliverable payload)`. Otherwise Herald refuses it with its own `BadPayload`.
    package var takesUnreadablePayloads = false
    /// Whether to send `apns-unique-id` in production, too; APNs sends it in its development environment only.
    package var alwaysSendsUniqueID = false
    /// Whether to explain every answer, and not only those to requests with `herald-explain: 1`.
    package var alwaysExplains = false

    /// The apps with channels and broadcasts; for other apps the answer is `FeatureNotEnabled`.
    package var broadcastApps = BroadcastApps.all
}
