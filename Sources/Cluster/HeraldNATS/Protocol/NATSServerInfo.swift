import Foundation

/// Facts that a server states in its INFO message.
package struct NATSServerInfo: Hashable, Sendable {
    package let serverName: String
    /// Version, such as `2.15.1`.
    package let version: String
    /// Largest message that the server accepts, in bytes of headers and payload.
    package let maximumPayload: Int
    package let hasHeaders: Bool
    package let requiresTLS: Bool
    package let offersTLS: Bool
    /// Random text that an nkey signs; nil if the server asks for none.
    package let nonce: String?
    /// Addresses of the cluster's servers for clients, `host:port`.
    package let announcedServers: [String]
    /// Whether the server is about to shut down and asks its clients to leave.
    package let isLameDuck: Bool

    /// Reads the JSON of an INFO message; nil if it is none.
    init?(json: some Sequence<UInt8>) {
        guard let content = try? ProtocolJSON.decode(Content.self, from: Data(json)) else { return nil }
        serverName = content.serverName ?? content.serverId
        version = content.version
        maximumPayload = max(0, content.maxPayload)
        hasHeaders = content.headers ?? false
        requiresTLS = content.tlsRequired ?? false
        offersTLS = requiresTLS || content.tlsAvailable ?? false
        nonce = content.nonce
        announcedServers = content.connectUrls ?? []
        isLameDuck = content.ldm ?? false
    }

    /// Words of the protocol.
    private struct Content: Decodable {
        let serverId: String
        let serverName: String?
        let version: String
        let maxPayload: Int
        let headers: Bool?
        let tlsRequired: Bool?
        let tlsAvailable: Bool?
        let nonce: String?
        let connectUrls: [String]?
        let ldm: Bool?
    }
}
