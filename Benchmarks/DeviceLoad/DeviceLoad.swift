import ArgumentParser
import Foundation
import LoadKit
import NIOCore
import NIOPosix
import NIOSSL

/// Holds many devices at an MQTT server, Herald or another, and measures what they receive.
///
/// One event loop, so that the whole load is one core. With `--publishers` it also sends, which is how a broker is fed;
/// Herald is fed from elsewhere. A payload begins with `{"t":` and the sender's monotonic clock in nanoseconds.
@main struct DeviceLoad: AsyncParsableCommand {
    static let configuration = CommandConfiguration(commandName: "device-load")

    @Option(help: "The server's port on 127.0.0.1.") var port: Int
    @Option(help: "The authority of the server's certificate.") var ca: String
    @Option(help: "A folder of device identities, <n>.pem, from 0; their client identifiers are bench-<n>.")
    var identities: String
    @Option(help: "How many devices.") var devices: Int
    @Option(help: "The filter to subscribe to; {n} stands for the device's number. Empty: none.") var subscribe: String
    @Option(help: "How many connections publish (QoS 1).") var publishers = 0
    @Option(help: "The topic to publish to; {n} stands for the device's number.") var publish = ""
    @Option(help: "Publishes in flight per publisher.") var window = 64
    @Option(help: "Publishes per second in all; 0: as fast as the windows allow.") var rate = 0
    @Option(help: "Seconds to measure, after a second of warming up.") var seconds = 5.0
    @Option(help: "Payload bytes.") var payload = 300
    @Flag(help: "Only connect, and print the device token that each receives.") var tokens = false
    @Flag(help: "Only connect, say so, and hold the connections until standard input ends.") var hold = false

    func run() async throws {
        let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
        let statistics = Statistics()
        let roots = NIOSSLTrustRoots.certificates(try NIOSSLCertificate.fromPEMFile(ca))
        try await withThrowingTaskGroup(of: Void.self) { tasks in
            // A few hundred handshakes at a time, as a storm that is let in step by step.
            for start in stride(from: 0, to: devices, by: 200) {
                for number in start..<min(start + 200, devices) {
                    tasks.addTask { try await connect(number, .device, group, roots, statistics) }
                }
                try await tasks.waitForAll()
            }
        }
        if tokens {
            for token in statistics.tokens { print(token) }
            return
        }
        say(["connected": Double(devices)])
        if hold {
            while let line = readLine(), line != "end" {}
            return
        }
        let start = MonotonicTime.now
        for number in 0..<publishers {
            try await connect(number, .publisher(start: start), group, roots, statistics)
        }
        try await Task.sleep(for: .seconds(1))
        statistics.begin()
        try await Task.sleep(for: .seconds(seconds))
        say(statistics.end())
    }

    private func connect(
        _ number: Int,
        _ role: LoadClient.Role,
        _ group: any EventLoopGroup,
        _ roots: NIOSSLTrustRoots,
        _ statistics: Statistics
    ) async throws {
        let identity = "\(identities)/\(number).pem"
        var tls = TLSConfiguration.makeClientConfiguration()
        tls.trustRoots = roots
        tls.certificateVerification = .noHostnameVerification
        tls.certificateChain = try NIOSSLCertificate.fromPEMFile(identity).map { .certificate($0) }
        tls.privateKey = .privateKey(try NIOSSLPrivateKey(file: identity, format: .pem))
        let context = try NIOSSLContext(configuration: tls)
        let settings = LoadClient.Settings(
            number: number,
            role: role,
            subscribe: subscribe,
            publish: publish,
            devices: devices,
            window: window,
            rate: publishers > 0 ? Double(rate) / Double(publishers) : 0,
            payload: payload,
            awaitsToken: tokens
        )
        let ready = group.next().makePromise(of: Void.self)
        _ = try await ClientBootstrap(group: group)
            .channelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    let client = LoadClient(settings, statistics: statistics, ready: ready)
                    let handler = try NIOSSLClientHandler(context: context, serverHostname: "localhost")
                    try channel.pipeline.syncOperations.addHandlers([handler, client])
                }
            }
            .connect(host: "127.0.0.1", port: port).get()
        try await ready.futureResult.get()
    }

    private func say(_ values: [String: Double]) {
        let text = values.sorted { $0.key < $1.key }.map { "\"\($0.key)\":\($0.value)" }.joined(separator: ",")
        FileHandle.standardOutput.write(Data("{\(text)}\n".utf8))
    }
}
