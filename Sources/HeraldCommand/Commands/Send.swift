import ArgumentParser
import Foundation
import HeraldMailbox
import HeraldModel
import HeraldProvider

/// The options of `herald send`.
struct SendOptions: ParsableArguments {
    @Argument(help: "The device token: 64 hexadecimal digits.")
    var token: String

    @Option(
        help: ArgumentHelp(
            "The app: a bundle identifier, with its suffix where the push type has one.",
            valueName: "id"
        )
    )
    var topic: String

    @Option(help: ArgumentHelp("A provider certificate: PEM with certificate, chain and key.", valueName: "file"))
    var certificate: String?

    @Option(help: ArgumentHelp("A provider key (AuthKey_….p8), with --key-id and --team.", valueName: "file"))
    var key: String?

    @Option(
        help: ArgumentHelp("The key's identifier; read from the name of an AuthKey file if left out.", valueName: "id")
    )
    var keyId: String?

    @Option(help: ArgumentHelp("The team's identifier.", valueName: "id"))
    var team: String?

    @Option(help: ArgumentHelp("The text to show.", valueName: "text"))
    var alert: String?

    @Option(help: ArgumentHelp("The title to show.", valueName: "text"))
    var title: String?

    @Option(help: ArgumentHelp("The number on the app's icon; 0 removes it.", valueName: "n"))
    var badge: Int?

    @Option(help: ArgumentHelp("The sound to play: a name, or default.", valueName: "name"))
    var sound: String?

    @Option(help: ArgumentHelp("A JSON file to send as it is, or - for standard input.", valueName: "file"))
    var payload: String?

    @Option(help: ArgumentHelp("The push type. (default: as the topic's suffix says, else alert)", valueName: "type"))
    var pushType: String?

    @Option(help: ArgumentHelp("10, 5 or 1.", valueName: "n"))
    var priority: Int?

    @Option(
        help: ArgumentHelp("Until when it may wait: UNIX seconds, 0 for one attempt, or like 1h.", valueName: "when")
    )
    var expiration: String?

    @Option(help: ArgumentHelp("Those that share it show as one.", valueName: "id"))
    var collapseId: String?

    @OptionGroup var peer: PeerOptions

    @Flag(help: "Print JSON.")
    var json = false

    /// The credential that was named.
    func credential() throws -> ProviderCredential {
        switch (certificate, key) {
        case (let certificate?, nil):
            guard keyId == nil, team == nil else {
                throw ValidationError("--key-id and --team go with --key.")
            }
            return .certificate(pem: try SafeFile.read(certificate))
        case (nil, let key?):
            guard let team else { throw ValidationError("--key needs --team.") }
            guard let id = keyId ?? SendOptions.identifier(inNameOf: key) else {
                throw ValidationError("--key needs --key-id.")
            }
            return .key(pem: try SafeFile.read(key), id: id, team: team)
        default:
            throw ValidationError("Say who sends: either --certificate, or --key with --key-id and --team.")
        }
    }

    /// `AuthKey_<key id>.p8` is how keys are named when they are made.
    static func identifier(inNameOf path: String) -> String? {
        let name = (path as NSString).lastPathComponent
        guard name.hasPrefix("AuthKey_"), name.hasSuffix(".p8") else { return nil }
        return String(name.dropFirst(8).dropLast(3))
    }
}

/// `herald send`: one notification from the command line.
struct Send: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Send a notification.",
        discussion: """
            Prints the apns-id and what the service answered; a refusal ends with exit code 1.

            Example:
              herald send TOKEN --topic com.example.chat --certificate provider.pem --alert 'Dinner is ready'
              herald send TOKEN --topic com.example.chat --key AuthKey_ABCDE12345.p8 --team TEAM123456 \\
                --title Dinner --alert 'It is ready' --sound default --expiration 1h
            """
    )

    @OptionGroup var options: SendOptions

    func run() async throws {
        let send = try SendRequest(options, now: ServiceClock().now())
        let place = try options.peer.service(defaultPort: 2197, door: \.api)
        var configuration = ProviderConfiguration(
            host: place.host,
            port: place.port,
            credential: try options.credential(),
            authorities: try options.peer.authorities()
        )
        configuration.explains = true
        let answer: PushAnswer
        do {
            answer = try await withProviderClient(configuration) { try await $0.send(send.request) }
        } catch let error as ProviderError {
            throw CommandError(.unreachable, error.message)
        }
        try report(answer)
    }

    private func report(_ answer: PushAnswer) throws {
        if options.json {
            try Terminal.sayJSON(SendReport(answer))
            if case .refused = answer { throw ExitCode.failure }
            return
        }
        switch answer {
        case .accepted(let receipt):
            Terminal.say("apns-id: \(receipt.id)")
            if let uniqueID = receipt.uniqueID { Terminal.say("apns-unique-id: \(uniqueID)") }
            Terminal.say(receipt.explanation.map { "accepted: \($0)" } ?? "accepted")
        case .refused(let refusal):
            if let id = refusal.id { Terminal.say("apns-id: \(id)") }
            throw CommandError(.refused, SendReport.words(for: refusal))
        }
    }
}

/// The answer as `herald send --json` prints it.
struct SendReport: Encodable, Hashable {
    let id: String?
    let uniqueID: String?
    let status: Int
    let reason: String?
    let explanation: String?
    /// Milliseconds since the UNIX epoch, with status 410.
    let timestamp: Int64?

    private enum CodingKeys: String, CodingKey {
        case id = "apns-id"
        case uniqueID = "apns-unique-id"
        case status
        case reason
        case explanation
        case timestamp
    }

    init(_ answer: PushAnswer) {
        switch answer {
        case .accepted(let receipt):
            (id, uniqueID, status, reason) = (receipt.id, receipt.uniqueID, 200, nil)
            (explanation, timestamp) = (receipt.explanation, nil)
        case .refused(let refusal):
            (id, uniqueID, status, reason) = (refusal.id, nil, refusal.status, refusal.reason.text)
            explanation = refusal.explanation ?? refusal.reason.rejection?.explanation
            timestamp = refusal.since?.milliseconds
        }
    }

    /// A refusal in one line.
    static func words(for refusal: PushRefusal) -> String {
        let reason = LogText.escaped(refusal.reason.description, limit: 64)
        let since = refusal.since.map { " since \($0.rfc3339)" } ?? ""
        let explanation = (refusal.explanation ?? refusal.reason.rejection?.explanation)
            .map { ": \(LogText.escaped($0, limit: 256))" }
        return "refused with \(refusal.status) \(reason)\(since)\(explanation ?? "")"
    }
}
