import ArgumentParser
import AsyncHTTPClient
import Foundation
import HeraldDevice
import HeraldModel
import NIOCore
import NIOHTTP1

/// `herald agent saw`: what the user saw of a notification.
struct AgentSaw: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "saw",
        abstract: "Say what the user saw of a notification: texts, badge, sound, or why nothing.",
        discussion: """
            Exits 1 if no such notification has come.

            Example:
              herald agent saw 9E3C1D1E-3B6E-4A7C-8F4E-0A4E6F1B2C3D --wait 5 --json
            """
    )

    @Argument(help: ArgumentHelp("Its apns-id, as the provider got it in its answer.", valueName: "apns-id"))
    var id: String

    @Option(help: ArgumentHelp("How long to wait for it to come, 600 at most. (default: 0)", valueName: "seconds"))
    var wait = 0.0

    @OptionGroup var place: AgentFolderOptions

    @Option(help: ArgumentHelp("Ask the device's screen at this address instead.", valueName: "url"))
    var screen: String?

    @Flag(help: "Print the record as JSON.")
    var json = false

    func validate() throws {
        guard NotificationID(id) != nil else {
            throw ValidationError("'\(LogText.escaped(id, limit: 64))' is not an apns-id, a UUID.")
        }
        guard (0...600).contains(wait) else { throw ValidationError("--wait must be from 0 to 600 seconds.") }
    }

    func run() async throws {
        let saw =
            if let screen { try await ScreenAddress(address: screen).saw(id, wait: wait) } else {
                try await fromSocket()
            }
        if json { return try Terminal.sayJSON(saw) }
        for line in try AgentReport.recordLines(saw) { Terminal.say(line) }
    }

    private func fromSocket() async throws -> PayloadValue {
        let answer = try await place.place().ask([
            "do": .string("saw"), "apns_id": .string(id), "wait": .number(wait),
        ])
        return answer["saw"] ?? .null
    }
}

/// A device's screen, asked over HTTP.
struct ScreenAddress {
    private let address: String

    init(address: String) throws {
        guard let url = URL(string: address), ["http", "https"].contains(url.scheme), url.host != nil else {
            throw ValidationError("--screen must be an address like http://127.0.0.1:8080.")
        }
        self.address = address.hasSuffix("/") ? String(address.dropLast()) : address
    }

    /// What the user saw.
    /// - Throws: ``CommandError``.
    func saw(_ id: String, wait: Double) async throws -> PayloadValue {
        let body: ByteBuffer
        let isThere: Bool
        do {
            let request = HTTPClientRequest(url: "\(address)/api/saw/\(id)?wait=\(wait)")
            let answer = try await HTTPClient.shared.execute(request, timeout: .seconds(Int64(wait) + 10))
            isThere = answer.status == .ok
            body = try await answer.body.collect(upTo: 1 << 20)
        } catch {
            throw CommandError(.unreachable, "no screen of a device answers at \(address)")
        }
        guard case .object(let members, _) = PayloadReader.read(Array(body.readableBytesView)) else {
            throw CommandError(.refused, "what answers at \(address) is not the screen of a device")
        }
        guard isThere else { throw CommandError(.refused, members["error"]?.text ?? "\(address) refuses to answer") }
        return .object(members)
    }
}
