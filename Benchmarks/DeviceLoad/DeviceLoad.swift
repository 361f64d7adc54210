import ArgumentParser
import Foundation
import LoadKit
import NIOCore

/// Holds many devices at an MQTT server, Herald or another, and measures what they receive.
///
/// Once they are connected it obeys lines on its standard input, and answers each with one line of JSON: `begin` and
/// `end` around what is measured; `publish <rate>` (0: as fast as the window allows), `each` (every topic once, and waits
/// for all acknowledgements) and `rest` for the publishers, which is how a broker is fed; Herald is fed from elsewhere.
/// `look` says what was received so far, and how many connections were lost; `again` connects all devices once more, and
/// answers when each has a message. It ends when its input does. A payload begins with `{"t":` and the sender's monotonic
/// clock in nanoseconds.
@main struct DeviceLoad: AsyncParsableCommand {
    static let configuration = CommandConfiguration(commandName: "device-load")

    @Option(help: "The server's port on 127.0.0.1.") var port: Int
    @Option(help: "The address from which the devices connect: one has ports for some 28,000.") var from: String?
    @Option(help: "The authority of the server's certificate.") var ca: String
    @Option(help: "A folder of device identities, <n>.pem; their client identifiers are bench-<n>.")
    var identities: String
    @Option(help: "How many devices.") var devices: Int
    @Option(help: "The number of the first one.") var first = 0
    @Option(help: "The filters to subscribe to, with commas between them; {n} stands for the device's number.")
    var subscribe: String
    @Option(help: "How many connections publish (QoS 1).") var publishers = 0
    @Option(help: "The topics to publish to for each device, with commas between them; {n} as above.")
    var publish = ""
    @Option(help: "Devices with topics, connected or not; 0: only the connected ones.") var topics = 0
    @Option(help: "Messages after which a device counts as connected; 0: after its subscription.")
    var expect = 0
    @Flag(help: "Sessions outlive their connections.") var keepSession = false
    @Option(help: "Seconds between two pings of a device; 0: it sends none.") var ping = 0
    @Flag(help: "Print the device tokens, one for each app, when all are connected.") var tokens = false

    func validate() throws {
        guard devices >= 0, publishers >= 0, expect >= 0, ping >= 0 else {
            throw ValidationError("Counts are 0 or more.")
        }
    }

    func run() async throws {
        let fleet = try Fleet(
            port: port,
            from: from.map { try SocketAddress(ipAddress: $0, port: 0) },
            authority: ca,
            identities: identities,
            statistics: Statistics()
        )
        let filters = subscribe.split(separator: ",").map(String.init)
        let goal: LoadClient.Goal =
            tokens ? .tokens(filters.count { $0.hasPrefix("apps/") }) : expect > 0 ? .messages(expect) : .subscribed
        let members = try fleet.members(first..<(first + devices)) { number in
            LoadClient.Settings(
                clientIdentifier: "bench-\(number)",
                filters: filters.map { $0.replacing("{n}", with: "\(number)") },
                goal: goal,
                keepsSession: keepSession,
                ping: ping
            )
        }
        var connected = try await fleet.connect(members)
        if tokens { write(fleet.statistics.tokens.joined(separator: "\n")) }
        let publishers = try await connectPublishers(fleet)
        say(connected.figures)
        while let line = readLine() {
            if line == "again" {
                connected = try await fleet.connect(members.map { $0.expecting(.messages(1)) })
                say(connected.figures)
            } else {
                say(try await obey(line, fleet, publishers))
            }
        }
        try await fleet.end(connected.handles + publishers)
    }

    private func connectPublishers(_ fleet: Fleet) async throws -> [Fleet.Handle] {
        guard publishers > 0 else { return [] }
        let topics = (first..<(first + (self.topics > 0 ? self.topics : devices))).flatMap { number in
            publish.split(separator: ",").map { Array($0.replacing("{n}", with: "\(number)").utf8) }
        }
        let members = try fleet.members(first..<(first + publishers)) { number in
            LoadClient.Settings(
                clientIdentifier: "bench-\(number)-publisher",
                filters: [],
                goal: .subscribed,
                keepsSession: false,
                ping: 0
            )
        } publishing: { number in
            Publishing(topics: topics, first: number * 7919)
        }
        return try await fleet.connect(members).handles
    }

    private func obey(_ line: String, _ fleet: Fleet, _ publishers: [Fleet.Handle]) async throws -> [String: Double] {
        let words = line.split(separator: " ")
        switch words.first {
        case "begin":
            fleet.statistics.begin()
        case "look":
            return fleet.statistics.soFar()
        case "end":
            return fleet.statistics.end()
        case "publish":
            guard words.count == 2, let rate = Double(words[1]), rate >= 0 else {
                throw LoadError(text: "not understood: \(line)")
            }
            let each = rate / Double(max(1, publishers.count))
            let pace = rate > 0 ? Publishing.Pace.perSecond(each) : .asFastAsTheWindowAllows
            try await fleet.publish(pace, on: publishers, awaited: false)
        case "each":
            // One of them: the topics are the same for all.
            try await fleet.publish(.each, on: Array(publishers.prefix(1)), awaited: true)
        case "rest":
            try await fleet.publish(.resting, on: publishers, awaited: false)
        default:
            throw LoadError(text: "not understood: \(line)")
        }
        return [:]
    }

    private func say(_ values: [String: Double]) {
        let text = values.sorted { $0.key < $1.key }.map { "\"\($0.key)\":\($0.value)" }.joined(separator: ",")
        write("{\(text)}")
    }

    private func write(_ line: String) {
        FileHandle.standardOutput.write(Data("\(line)\n".utf8))
    }
}
