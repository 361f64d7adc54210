import ArgumentParser
import Foundation
import HeraldMailbox
import HeraldModel
import HeraldProvider
import HeraldService

/// `herald send`: a notification from the command line.
struct Send: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Send a notification.",
        discussion: """
            Prints the apns-id and the service's answer; a refusal ends with exit code 1. Every option may also be a key \
            of a YAML file (--config) or an environment variable: push-type, HERALD_PUSH_TYPE.

            With --label, each device with the label that has the app gets a notification, and the command prints the outcome \
            of each. It runs where the service runs, because it needs the devices' tokens.

            Example:
              herald send TOKEN --topic com.example.chat \\
                --certificate provider.pem --alert 'Dinner is ready'
              herald send TOKEN --topic com.example.chat \\
                --key AuthKey_ABCDE12345.p8 --team TEAM123456 \\
                --title Dinner --alert 'It is ready' --sound default --expiration 1h
              herald send --label room=hall --topic com.example.chat \\
                --certificate provider.pem --push-type background
            """
    )

    @OptionGroup var options: SendOptions

    func validate() throws {
        guard options.token != nil || !options.labels.isEmpty else {
            throw ValidationError("Missing expected argument '<token>', or '--label <name=value>'.")
        }
    }

    func run() async throws {
        let options = try options.completed()
        let fleet = try LabelledApp(options)
        let send = try SendRequest(options, to: fleet == nil ? nil : LabelledApp.anyToken, now: ServiceClock().now())
        let place = try options.peer.service(defaultPort: 2197, listener: \.api)
        var configuration = ProviderConfiguration(
            host: place.service.host,
            port: place.service.port,
            credential: try options.credential(),
            authorities: try options.peer.authorities()
        )
        configuration.address = place.address
        if let proxy = options.proxy { configuration.proxy = try ProviderProxy(proxy) }
        configuration.explains = true
        // A person at a terminal wants the first answer, not the third.
        configuration.retry = .never
        configuration.totalTimeout = configuration.timeout
        do {
            let answer = try await withProviderClient(configuration) { client -> PushAnswer? in
                guard let fleet else { return try await client.send(send.request) }
                try await fleet.send(send.request, client, named: place.service.host)
                return nil
            }
            if let answer { try report(answer) }
        } catch let error as ProviderError {
            throw options.peer.error(error)
        }
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
    let apnsID: String?
    let apnsUniqueID: String?
    let status: Int
    let reason: String?
    let explanation: String?
    /// Milliseconds since the UNIX epoch, with status 410.
    let timestamp: Int64?

    init(_ answer: PushAnswer) {
        switch answer {
        case .accepted(let receipt):
            (apnsID, apnsUniqueID, status, reason) = (receipt.id, receipt.uniqueID, 200, nil)
            (explanation, timestamp) = (receipt.explanation, nil)
        case .refused(let refusal):
            (apnsID, apnsUniqueID, status, reason) = (refusal.id, nil, refusal.status, refusal.reason.text)
            explanation = refusal.explanation ?? refusal.reason.known?.explanation
            timestamp = refusal.since?.milliseconds
        }
    }

    /// A refusal in one line.
    static func words(for refusal: PushRefusal) -> String {
        let reason = LogText.escaped(refusal.reason.description, limit: 64)
        let since = refusal.since.map { " since \($0.rfc3339)" } ?? ""
        let explanation = (refusal.explanation ?? refusal.reason.known?.explanation)
            .map { ": \(LogText.escaped($0, limit: 256))" }
        return "refused with \(refusal.status) \(reason)\(since)\(explanation ?? "")"
    }
}
