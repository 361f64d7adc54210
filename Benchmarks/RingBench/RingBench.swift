import ArgumentParser
import Foundation
import HeraldCluster
import HeraldModel
import HeraldNATS
import LoadKit
import Logging
import NIOCore
import NIOPosix

/// One node of a cluster, as far as claims and rings go, in one of the two ways of `docs/decisions/rings.md`.
///
/// Obeys lines on the standard input, one after another, and answers each with a line of JSON, until the input ends. Events of
/// the connection are lines, too; they say when, by the machine's monotonic clock.
///
/// | line | action |
/// |---|---|
/// | `streams` | makes the streams of the mailboxes |
/// | `connect FIRST COUNT WINDOW` | claims devices, so many at a time |
/// | `disconnect FIRST COUNT WINDOW` | releases them |
/// | `ring FIRST COUNT WINDOW` | rings for devices |
/// | `await DEVICE` | answers when the device can be rung, and says since when |
/// | `reach DEVICE` | rings until the holder answers, and says when that ring was sent |
/// | `count` | devices that are held, and those in the table |
@main
struct RingBench: AsyncParsableCommand {
    enum Way: String, ExpressibleByArgument {
        /// Claims alone.
        case none
        /// A subscription for each device that is connected here.
        case subscriptions
        /// A table of all claims, from the log.
        case table
    }

    @Option(help: "Address of a server; repeat it for each.") var server: [String]
    @Option(help: "Name of this node.") var name: String
    @Option(help: "none, subscriptions or table.") var way: Way
    @Option(help: "Partitions of the cluster.") var partitions = 4
    @Option(help: "Bytes of a ring.") var payload = 500

    func validate() throws {
        guard NodeName(name) != nil, Partitions(count: partitions) != nil, payload >= 8 else {
            throw ValidationError("A name or a number is not possible.")
        }
    }

    func run() async throws {
        guard let name = NodeName(name), let partitions = Partitions(count: partitions) else { return }
        var configuration = NATSConfiguration(servers: try server.map { try NATSServerAddress($0) }, name: name.text)
        configuration.limits.subscriptions = 10_000_000
        configuration.limits.pendingBytes = 256 << 20
        let (connections, isConnected) = AsyncStream.makeStream(of: Void.self)
        let connection = try NATSConnection(
            configuration,
            on: MultiThreadedEventLoopGroup.singleton.next(),
            logger: Logger(label: "nats", factory: { _ in SwiftLogNoOpLogHandler() })
        ) { event in
            switch event {
            case .connected:
                RingBench.say(["event": "connected", "at": MonotonicTime.now.nanoseconds])
                isConnected.finish()
            case .disconnected: RingBench.say(["event": "disconnected", "at": MonotonicTime.now.nanoseconds])
            case .lameDuck: break
            }
        }
        connection.start()
        for await _ in connections {}
        let node = try RingNode(connection, name: name, way: way, partitions: partitions, payload: payload)
        while let line = readLine() {
            let words = line.split(separator: " ").map(String.init)
            RingBench.say(try await node.obey(words[0], words.dropFirst().compactMap { Int($0) }))
        }
        await connection.close()
    }

    static func say(_ answer: [String: any Sendable]) {
        guard var bytes = try? JSONSerialization.data(withJSONObject: answer) else { return }
        bytes.append(UInt8(ascii: "\n"))
        try? FileHandle.standardOutput.write(contentsOf: bytes)
    }
}
