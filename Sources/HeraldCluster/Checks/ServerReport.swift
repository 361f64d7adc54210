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
        let answer = try JSONDecoder().decode(Answer.self, from: Data(body))
        guard let now = Self.time(answer.now) else {
            throw DecodingError.dataCorrupted(.init(codingPath: [], debugDescription: "now is no time"))
        }
        self.init(
            name: answer.serverName,
            version: answer.version,
            now: now,
            syncsAlways: answer.jetstream?.config.map { $0.syncAlways ?? false },
            memory: answer.mem ?? 0
        )
    }

    /// Reads RFC 3339 with up to nine digits of a second's fraction.
    private static func time(_ text: String) -> WallTime? {
        let style = Date.ISO8601FormatStyle(includingFractionalSeconds: false)
        let parts = text.split(separator: ".", maxSplits: 1)
        guard parts.count == 2 else { return (try? style.parse(text)).map(WallTime.init(date:)) }
        let digits = parts[1].prefix { $0.isASCII && $0.isNumber }
        guard let whole = try? style.parse("\(parts[0])\(parts[1].dropFirst(digits.count))"),
            let milliseconds = Int64(digits.prefix(3).padding(toLength: 3, withPad: "0", startingAt: 0))
        else { return nil }
        return WallTime(date: whole) + .milliseconds(milliseconds)
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

            private enum CodingKeys: String, CodingKey {
                case syncAlways = "sync_always"
            }
        }

        private enum CodingKeys: String, CodingKey {
            case version, now, mem, jetstream
            case serverName = "server_name"
        }
    }
}

extension WallTime {
    fileprivate init(date: Date) {
        self.init(milliseconds: Int64((date.timeIntervalSince1970 * 1000).rounded()))
    }
}
