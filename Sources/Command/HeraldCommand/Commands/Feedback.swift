import ArgumentParser
import HeraldModel
import HeraldProvider
import HeraldService

/// `herald feedback`: the dead tokens of an app since the last read.
struct Feedback: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Read the feedback service: which device tokens no longer work.",
        discussion: """
            Prints a time and a token, one line each: the time of the first notification that was sent to the token in \
            vain, because the app was gone. A complete reading empties the list. Keep a token that your app has \
            registered since that time. Every option may also be a key of a YAML file \
            (--config) or an environment variable: certificate, HERALD_CERTIFICATE.

            Example:
              herald feedback --certificate provider.pem
              herald feedback --certificate provider.pem \\
                --service push.example.com:2196 --ca ca.pem --json
            """
    )

    @Option(help: ArgumentHelp("A provider certificate: PEM with certificate, chain and key.", valueName: "file"))
    var certificate: String?

    @OptionGroup var peer: PeerOptions

    @Option(help: ArgumentHelp("\(SettingKey.proxyHelp)", valueName: "url"))
    var proxy: String?

    @Flag(help: "Print JSON.")
    var json = false

    func run() async throws {
        var peer = peer
        let settings = try peer.settings()
        try peer.complete(from: settings)
        guard let certificate = try certificate ?? settings.text(.certificate) else {
            throw ValidationError("Missing expected argument '--certificate <file>'")
        }
        let place = try peer.service(defaultPort: 2196, listener: \.feedback)
        var configuration = ProviderConfiguration(
            host: place.service.host,
            port: place.service.port,
            credential: .certificate(pem: try SafeFile.read(certificate, isSecret: true)),
            authorities: try peer.authorities()
        )
        configuration.address = place.address
        if let proxy = try proxy ?? settings.text(.proxy) { configuration.proxy = try ProviderProxy(proxy) }
        var lines: [FeedbackLine] = []
        var isEmpty = true
        do {
            try await readFeedback(configuration) { entry in
                let line = FeedbackLine(entry)
                isEmpty = false
                if json { lines.append(line) } else { Terminal.say(line.text) }
            }
        } catch let error as ProviderError {
            // Nothing is lost: the service forgets only what was read to the end.
            throw peer.error(error)
        }
        if json { return try Terminal.sayJSON(lines) }
        if isEmpty { Terminal.complain("herald: no dead tokens since the last reading") }
    }
}

/// A dead token as `herald feedback` prints it.
struct FeedbackLine: Encodable, Hashable {
    /// RFC 3339, UTC.
    let time: String
    /// Lower-case hex.
    let token: String

    init(_ entry: FeedbackEntry) {
        time = entry.time.rfc3339
        token = entry.tokenHex
    }

    var text: String { "\(time)  \(token)" }
}
