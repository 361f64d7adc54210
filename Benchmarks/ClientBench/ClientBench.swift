import ArgumentParser
import Foundation
import HeraldModel
import HeraldProvider

/// The client library as fast as it gets answers, through its public interface: many tasks that send one notification
/// after the other, each to a device of its own.
@main
struct ClientBench: AsyncParsableCommand {
    @Option(help: "The service's port on this machine.")
    var port: Int

    @Option(help: "The authority of the service's certificate.")
    var ca: String

    @Option(help: "Device tokens, one a line.")
    var tokens: String

    @Option(help: "A provider key, AuthKey_<id>.p8.")
    var key: String

    @Option(help: "The key's team.")
    var team: String

    @Option(help: "The app.")
    var topic: String

    @Option(help: "A file with the payload.")
    var payload: String

    @Option(help: "Seconds of measurement, after one second of warming up.")
    var seconds = 4

    @Option(help: "Connections at most.")
    var connections = 4

    @Option(help: "Notifications in flight.")
    var atOnce = 1000

    @Option(help: "Seconds until a notification expires; 0: one attempt.")
    var keep = 0

    func run() async throws {
        let id = (key as NSString).lastPathComponent.dropFirst("AuthKey_".count).dropLast(".p8".count)
        var configuration = ProviderConfiguration(
            host: "localhost",
            port: port,
            credential: .key(pem: try read(key), id: String(id), team: team),
            authorities: try read(ca)
        )
        configuration.connections.maximum = connections
        configuration.connections.streams = max(1, atOnce / connections)
        let body = try read(payload)
        guard let topic = Topic(topic) else { throw ValidationError("\(topic) is not a topic.") }
        let lines = String(decoding: try read(tokens), as: UTF8.self).split(separator: "\n")
        let devices = lines.compactMap { PushToken($0) }
        guard devices.count >= atOnce else { throw ValidationError("There are fewer tokens than tasks.") }
        let (seconds, atOnce) = (seconds, atOnce)
        let expiration =
            keep == 0 ? Expiration.once : .at(WallTime(seconds: Int64(Date().timeIntervalSince1970) + Int64(keep)))
        let milliseconds = try await withProviderClient(configuration) { client in
            let clock = ContinuousClock()
            let begin = clock.now + .seconds(1)
            let end = begin + .seconds(seconds)
            return try await withThrowingTaskGroup(of: [Float].self) { group in
                for worker in 0..<atOnce {
                    group.addTask {
                        var milliseconds: [Float] = []
                        var place = worker
                        var start = clock.now
                        while true {
                            var request = PushRequest(token: devices[place], topic: topic, payload: body)
                            request.priority = .immediate
                            request.expiration = expiration
                            guard case .accepted = try await client.send(request) else {
                                throw ValidationError("A notification was refused.")
                            }
                            let now = clock.now
                            if now >= end { return milliseconds }
                            if now >= begin { milliseconds.append(Float((now - start) / .milliseconds(1))) }
                            start = now
                            place = (place + atOnce) % devices.count
                        }
                    }
                }
                return try await group.reduce([], +).sorted()
            }
        }
        func percentile(_ share: Double) -> Float {
            milliseconds.isEmpty ? .nan : milliseconds[Int(Double(milliseconds.count - 1) * share)]
        }
        print("answered \(milliseconds.count) p50 \(percentile(0.5)) p99 \(percentile(0.99))")
    }

    private func read(_ path: String) throws -> [UInt8] {
        Array(try Data(contentsOf: URL(fileURLWithPath: path)))
    }
}
