import ArgumentParser
import Foundation
import HeraldCluster
import HeraldMailbox
import HeraldModel
import HeraldNATS
import LoadKit
import Logging
import NIOCore
import NIOPosix

/// Commits to NATS servers, by a bare publisher or through the mailbox of a cluster's node, with a number of them in flight.
///
/// Prints the rate, and the CPU time of this process for each.
@main
struct ClusterBench: AsyncParsableCommand {
    enum Mode: String, ExpressibleByArgument {
        /// A publisher of the same bytes, on the same connection code.
        case bare
        /// ``ClusterMailbox``, without a journal.
        case store
    }

    @Option(help: "Address of a server; repeat it for each.") var server: [String]
    @Option(help: "bare or store.") var mode: Mode
    @Option(help: "Notifications, each for another device.") var count = 50_000
    @Option(help: "Number of the first device: other runs have used those before it.") var first = 1
    @Option(help: "Commits in flight.") var window = 512
    @Option(help: "Payload bytes.") var payload = 500
    @Option(help: "Servers that keep each notification.") var replicas = 3

    func validate() throws {
        guard count > 0, window > 0, first > 0, payload >= 21 else { throw ValidationError("A number is too small.") }
    }

    func run() async throws {
        let connection = try await connected()
        let jetStream = JetStream(connection)
        let commits: any Commits =
            switch mode {
            case .bare: try await BareCommits(jetStream, replicas: replicas)
            case .store: try await StoreCommits(jetStream, replicas: replicas)
            }
        let pump = CommitPump(commits, notifications: notifications(), window: window)
        let (clock, begin, processor) = (ContinuousClock(), ContinuousClock.now, ProcessorTime.seconds)
        await pump.run()
        let seconds = (clock.now - begin) / .seconds(1)
        let spent = ProcessorTime.seconds - processor
        await connection.close()
        guard pump.failures == 0 else { throw ValidationError("\(pump.failures) notifications were not stored.") }
        print(#"{"rate": \#(Double(count) / seconds), "cpu_us": \#(spent * 1e6 / Double(count))}"#)
    }

    private func connected() async throws -> NATSConnection {
        let (stream, isConnected) = AsyncStream.makeStream(of: Void.self)
        let connection = try NATSConnection(
            NATSConfiguration(servers: server.map { try NATSServerAddress($0) }, name: "cluster-bench"),
            on: MultiThreadedEventLoopGroup.singleton.next(),
            logger: Logger(label: "nats", factory: { _ in SwiftLogNoOpLogHandler() })
        ) { event in
            if case .connected = event { isConnected.finish() }
        }
        connection.start()
        for await _ in stream {}
        return connection
    }

    private func notifications() -> [HeraldModel.Notification] {
        let now = ServiceClock().now()
        let body =
            Array("{\"aps\":{\"alert\":\"".utf8) + [UInt8](repeating: UInt8(ascii: "x"), count: payload - 21)
            + Array("\"}}".utf8)
        return (first..<first + count).map { number in
            HeraldModel.Notification(
                id: .random(),
                uniqueID: .random(),
                slot: Slot(device: DeviceNumber(UInt64(number)), app: AppNumber(1)),
                received: now,
                storedUntil: now + .seconds(30 * 86_400),
                priority: .immediate,
                pushType: .alert,
                collapseID: nil,
                payload: body
            )
        }
    }
}
