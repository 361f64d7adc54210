import Foundation
package import HeraldModel

/// The state of one NATS server, from its monitoring port (`/varz`).
package struct ServerReport: Hashable, Sendable {
    package let name: String
    package let version: String
    /// The server's clock when it answered.
    package let now: WallTime
    /// Whether every write is synced before it is acknowledged; nil without JetStream.
    package let syncsAlways: Bool?
    /// The memory of its process, in bytes.
    package let memory: Int64

    package init(name: String, version: String, now: WallTime, syncsAlways: Bool?, memory: Int64) {
        self.name = name
        self.version = version
        self.now = now
        self.syncsAlways = syncsAlways
        self.memory = memory
    }

    /// Reads the body of an answer.
    /// - Throws: If it is not one of a NATS server.
    package init(varz body: some Sequence<UInt8>) throws {
        let decoder = JSONDecoder()
        decoder.keyDecodingStrategy = .convertFromSnakeCase
        let answer = try decoder.decode(Answer.self, from: Data(body))
        guard let now = WallTime(rfc3339: answer.now) else {
            throw DecodingError.dataCorrupted(.init(codingPath: [], debugDescription: "now is not a time"))
        }
        self.init(
            name: answer.serverName,
            version: answer.version,
            now: now,
            syncsAlways: answer.jetstream?.config.map { $0.syncAlways ?? false },
            memory: answer.mem ?? 0
        )
    }

    private struct Answer: Decodable {
        let serverName: String
        let version: String
        let now: String
        let mem: Int64?
        let jetstream: JetStream?

        struct JetStream: Decodable {
            let config: Config?
        }

        struct Config: Decodable {
            let syncAlways: Bool?
        }
    }
}
