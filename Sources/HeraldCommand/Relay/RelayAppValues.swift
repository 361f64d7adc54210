import Foundation
import HeraldModel
import HeraldRelay

/// What is said of an app, on the command line or in one block of the file; checked by making an app of it.
struct RelayAppValues {
    var name: String?
    var topics: [String] = []
    var environment: String?
    var certificate: String?
    var key: String?
    var keyID: String?
    var team: String?
    var service: String?
    var interface: String?
    var ca: String?
    var feedback: String?
    var console: String?
    var consoleToken: String?

    /// Makes the app, reading its files.
    /// - Parameters:
    ///   - common: The relay's environment, where this names none.
    ///   - place: Where it is said, for errors.
    /// - Returns: The app.
    /// - Throws: ``CommandError``.
    func app(_ common: PushEnvironment, at place: String) throws -> RelayApp {
        func wrong(_ words: String) -> CommandError { CommandError(.configuration, "\(place): \(words)") }
        func hostPort(_ text: String, _ name: String, _ port: Int) throws -> RelayApp.Place {
            guard let found = HostPort(text, defaultPort: port) else {
                throw wrong("`\(name)` must be a host and a port, like localhost:\(port)")
            }
            return RelayApp.Place(host: found.host, port: found.port)
        }
        var environment = common
        if let text = self.environment {
            guard let named = PushEnvironment(rawValue: text) else {
                throw wrong("`environment` must be production or sandbox")
            }
            environment = named
        }
        for topic in topics where Topic(topic) == nil {
            throw wrong("\(topic.debugDescription) is not a topic, like com.example.chat")
        }
        let place =
            try service.map { try hostPort($0, "service", interface == "binary" ? 2195 : 2197) }
            ?? RelayApp.apple(environment)
        var app = RelayApp(
            name: name ?? (service == nil ? "apple" : "herald"),
            topics: topics,
            environment: environment,
            service: place,
            credential: try credential(wrong)
        )
        app.interface = try interface(of: app, wrong)
        app.authorities = try ca.map { try SafeFile.read($0) }
        if let feedback {
            guard case .certificate = app.credential else {
                throw wrong("the feedback service knows providers by their certificate: give `certificate`, not `key`")
            }
            guard !topics.isEmpty else { throw wrong("the feedback service names no topic: give `topic` too") }
            app.feedback = try hostPort(feedback, "feedback", 2196)
        }
        if let console {
            guard let url = URL(string: console), url.scheme == "http" || url.scheme == "https", url.host != nil else {
                throw wrong("`console` must be an address like http://127.0.0.1:2190")
            }
            guard let consoleToken else { throw wrong("`console` needs `console-token`: the file run/admin.token") }
            _ = try RelayAppValues.token(consoleToken)
            app.journal = RelayApp.Journal(console: console, tokenFile: consoleToken)
        }
        return app
    }

    /// The token that a file holds now.
    static func token(_ path: String) throws -> String {
        String(decoding: try SafeFile.read(path), as: UTF8.self).trimmingCharacters(in: .whitespacesAndNewlines)
    }

    /// How the service is spoken to, and whether it can be with the rest.
    private func interface(of app: RelayApp, _ wrong: (String) -> CommandError) throws -> RelayApp.Interface {
        guard let interface else { return .http2 }
        guard let named = RelayApp.Interface(rawValue: interface) else {
            throw wrong("`interface` must be http2 or binary")
        }
        guard named == .binary else { return named }
        guard case .certificate = app.credential else {
            throw wrong("the binary interface knows providers by their certificate: give `certificate`, not `key`")
        }
        guard service != nil else {
            throw wrong("Apple has no binary interface any more: say in `service` whose it is, like localhost:2195")
        }
        guard topics.count == 1 else {
            throw wrong("the binary interface sends to the certificate's topic alone: give that one in `topic`")
        }
        return named
    }

    private func credential(_ wrong: (String) -> CommandError) throws -> RelayApp.Credential {
        switch (certificate, key) {
        case (let certificate?, nil): return .certificate(pem: try SafeFile.read(certificate))
        case (nil, let key?):
            guard let team else { throw wrong("`key` needs `team`") }
            guard let id = keyID ?? SendOptions.identifier(inNameOf: key) else { throw wrong("`key` needs `key-id`") }
            return .key(pem: try SafeFile.read(key), id: id, team: team)
        default: throw wrong("give either `certificate`, or `key` with `key-id` and `team`")
        }
    }
}
