import ArgumentParser
import AsyncHTTPClient
import Foundation
import HeraldJSON
import HeraldModel
import HeraldPhone
import HeraldService
import NIOCore
import NIOHTTP1

/// `herald agent shown`: prints the display record of a notification.
struct AgentShown: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "shown",
        abstract: "Print what a notification showed: texts, badge, sound, or why nothing was shown.",
        discussion: """
            Exits with 1 if the notification has not arrived. Of a local notification that was shown several times, the \
            last time counts.

            Example:
              herald agent shown 9E3C1D1E-3B6E-4A7C-8F4E-0A4E6F1B2C3D --wait 5 --json
              herald agent shown morning
            """
    )

    @Argument(
        help: ArgumentHelp(
            "The apns-id, from the answer to the provider; or the identifier of a local notification.",
            valueName: "id"
        )
    )
    var id: String

    @Option(help: ArgumentHelp("How long to wait for it to arrive, at most 600.", valueName: "seconds"))
    var wait = 0.0

    @OptionGroup var options: AgentFolderOptions

    @Option(help: ArgumentHelp("Ask the device's screen at this address instead.", valueName: "url"))
    var screen: String?

    @Flag(help: "Print the record as JSON.")
    var json = false

    func validate() throws {
        guard (0...600).contains(wait) else { throw ValidationError("--wait must be from 0 to 600 seconds.") }
    }

    func run() async throws {
        let record =
            if let screen { try await ScreenAddress(address: screen).shown(id, wait: wait) } else {
                try await fromSocket()
            }
        if json { return Terminal.sayJSON(record) }
        for line in try AgentReport.recordLines(record) { Terminal.say(line) }
    }

    private func fromSocket() async throws -> JSON {
        let answer = try await options.existingFolder().ask([
            "do": .string("shown"), "notification": .string(id), "wait": try JSON(encoding: wait),
        ])
        return answer["shown"] ?? .null
    }
}

/// The screen of a device, over HTTP.
struct ScreenAddress {
    private let address: String

    init(address: String) throws {
        guard WebAddress.read(address) != nil else {
            throw ValidationError("--screen must be an address like http://127.0.0.1:8080.")
        }
        self.address = address.hasSuffix("/") ? String(address.dropLast()) : address
    }

    /// Fetches a display record.
    /// - Throws: ``CommandError``.
    func shown(_ id: String, wait: Double) async throws -> JSON {
        let body: ByteBuffer
        let isFound: Bool
        do {
            let name = id.addingPercentEncoding(withAllowedCharacters: .alphanumerics) ?? id
            let request = HTTPClientRequest(url: "\(address)/api/shown/\(name)?wait=\(wait)")
            let answer = try await HTTPClient.shared.execute(request, timeout: .seconds(Int64(wait) + 10))
            isFound = answer.status == .ok
            body = try await answer.body.collect(upTo: 1 << 20)
        } catch {
            throw CommandError(.unreachable, "no device screen answers at \(address)")
        }
        guard let members = JSON.Object(Array(body.readableBytesView), rules: .lenient) else {
            throw CommandError(.refused, "the server at \(address) is not a device screen")
        }
        guard isFound else { throw CommandError(.refused, members["error"]?.text ?? "\(address) refused the request") }
        return .object(members)
    }
}
