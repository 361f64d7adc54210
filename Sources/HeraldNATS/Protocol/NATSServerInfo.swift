import Foundation

/// Facts that a server states in its INFO message.
package struct NATSServerInfo: Hashable, Sendable {
    package let serverID: String
    package let serverName: String
    /// Version, such as `2.15.1`.
    package let version: String
    /// Name of the cluster; nil for a server alone.
    package let cluster: String?
    /// Largest message that the server accepts, in bytes of headers and payload.
    package let maximumPayload: Int
    package let hasHeaders: Bool
    package let hasJetStream: Bool
    package let requiresTLS: Bool
    package let offersTLS: Bool
    package let requiresCredential: Bool
    /// Random text that an nkey signs; nil if the server asks for none.
    package let nonce: String?
    /// Addresses of the cluster's servers for clients, `host:port`.
    package let announcedServers: [String]
    /// Whether the server is about to shut down and asks its clients to leave.
    package let isLameDuck: Bool

    /// Reads the JSON of an INFO message; nil if it is none.
    init?(json: some Sequence<UInt8>) {
        guard let content = try? JSONDecoder().decode(Content.self, from: Data(json)) else { return nil }
        serverID = content.server_id
        serverName = content.server_name ?? content.server_id
        version = content.version
        cluster = content.cluster
        maximumPayload = max(0, content.max_payload)
        hasHeaders = content.headers ?? false
        hasJetStream = content.jetstream ?? false
        requiresTLS = content.tls_required ?? false
        offersTLS = requiresTLS || content.tls_available ?? false
        requiresCredential = content.auth_required ?? false
        nonce = content.nonce
        announcedServers = content.connect_urls ?? []
        isLameDuck = content.ldm ?? false
    }

    /// Names of the protocol.
    private struct Content: Decodable {
        let server_id: String
        let server_name: String?
        let version: String
        let cluster: String?
        let max_payload: Int
        let headers: Bool?
        let jetstream: Bool?
        let tls_required: Bool?
        let tls_available: Bool?
        let auth_required: Bool?
        let nonce: String?
        let connect_urls: [String]?
        let ldm: Bool?
    }
}
