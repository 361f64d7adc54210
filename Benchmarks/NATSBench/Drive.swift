import ArgumentParser
import Foundation
import HeraldNATS
import NIOCore
import Synchronization

/// Obeys lines of JSON on the standard input, and answers with lines of JSON, until the input ends.
struct Drive: AsyncParsableCommand {
    static let configuration = CommandConfiguration(commandName: "drive")

    @OptionGroup var connection: ConnectionOptions

    func run() async throws {
        let output = Output()
        let connection = try connection.connection { event in
            switch event {
            case .connected(let info):
                output.say(Line(event: "connected", server: info.serverName, version: info.version))
            case .disconnected(let error):
                output.say(Line(event: "disconnected", kind: error.kind.rawValue, reason: error.reason))
            case .lameDuck: output.say(Line(event: "lameDuck"))
            }
        }
        connection.start()
        let driver = Driver(connection, output)
        while let line = readLine() {
            await driver.obey(try JSONDecoder().decode(Command.self, from: Data(line.utf8)))
        }
        await connection.close()
    }
}

/// Order of a test.
///
/// The payload is base 64.
struct Command: Decodable {
    let id: Int
    let `do`: String
    let subject: String?
    let subjects: [String]?
    let stream: String?
    let payload: Data?
    let headers: [[String]]?
    let reply: String?
    let sequence: UInt64?
    /// Seconds.
    let within: Double?
    let ttl: Double?
    let configuration: StreamConfiguration?
    let of: Int?
}

/// Answer to an order (`id`), or an event.
struct Line: Encodable {
    struct Message: Encodable {
        let subject: String
        let sequence: UInt64?
        let reply: String?
        let headers: [[String]]
        let payload: Data
    }

    var id: Int?
    var event: String?
    var outcome: String?
    var kind: String?
    var reason: String?
    var code: Int?
    var sequence: UInt64?
    var server: String?
    var version: String?
    var message: Message?
    var messages: [Message]?
    var info: Info?
    var statistics: [String: UInt64]?

    struct Info: Encodable {
        let name: String
        let created: String
        let messages: UInt64
        let first: UInt64
        let last: UInt64
        let replicas: Int
        let configuration: StreamConfiguration
    }
}

/// Standard output: whole lines, from any thread.
final class Output: Sendable {
    private let lock = Mutex(())

    func say(_ line: Line) {
        guard var bytes = try? JSONEncoder().encode(line) else { return }
        bytes.append(UInt8(ascii: "\n"))
        lock.withLock { _ in try? FileHandle.standardOutput.write(contentsOf: bytes) }
    }
}

extension Line.Message {
    init(_ message: NATSMessage) {
        self.init(
            subject: message.subject,
            sequence: nil,
            reply: message.replyTo,
            headers: message.headers.fields.map { [$0.name, $0.value] },
            payload: Data(message.payload.readableBytesView)
        )
    }

    init(_ message: StoredMessage) {
        self.init(
            subject: message.subject,
            sequence: message.sequence,
            reply: nil,
            headers: message.headers.fields.map { [$0.name, $0.value] },
            payload: Data(message.payload.readableBytesView)
        )
    }
}
