import Foundation
import HeraldIdentity
import HeraldModel
import HeraldProvider
import HeraldRelay
import HeraldService
import HeraldTrust

/// The settings of one app, one row each: options of `herald relay run`, and keys of a block of `apps`.
enum RelayAppSettings: SettingGroup {
    static let title = "App"
    static let rows: [Setting<RelayAppValues>] = [
        .optional(.topic, \.topic, valueName: "id") { "The app. (default: every topic)" },
        .optional(.certificate, \.certificate, valueName: "file") {
            "A provider certificate: PEM with certificate, chain and key."
        },
        .optional(.key, \.key, valueName: "file") { "A provider key (AuthKey_….p8), with --key-id and --team." },
        .optional(.keyID, \.keyID, valueName: "id") {
            "The key's identifier. (default: from the name of an AuthKey file)"
        },
        .optional(.team, \.team, valueName: "id") { "The team's identifier." },
        .optional(.service, \.service, valueName: "host:port") { "The service. (default: Apple's, by environment)" },
        .optional(.interface, \.interface, valueName: "interface") {
            "The service's interface: http2 or binary. (default: http2)"
        },
        .optional(.ca, \.ca, valueName: "file") { "The authority to trust, PEM. (default: the system's)" },
        .optional(.proxy, \.proxy, valueName: "url") { SettingKey.proxyHelp },
        .optional(.feedback, \.feedback, valueName: "host:port") { "The feedback service, if there is one." },
        .optional(.console, \.console, valueName: "url") {
            "The console of a Herald. The relay asks its journal about sends without an answer."
        },
        .optional(.consoleToken, \.consoleToken, valueName: "file") { "The file with the console's bearer token." },
    ]

    static let fileRows =
        rows + [
            .optional(SettingKey("name", example: "herald"), \.name, valueName: "name") {
                "The app's name in the log."
            },
            .optional(.environment, \.environment, valueName: "environment") { "The app's environment." },
            .list(
                "topics",
                \.topics,
                example: "com.example.app",
                valueName: "id",
                wanted: "topics",
                show: { $0 },
                make: { $0 },
                help: {
                    "The apps."
                }
            ),
        ]
}

/// An app as the command line or a block of the file describes it; ``app(_:at:)`` checks it.
struct RelayAppValues: SettingTarget {
    static let defaults = RelayAppValues()

    var name: String?
    var topic: String?
    var topics: [String] = []
    var environment: String?
    var certificate: String?
    var key: String?
    var keyID: String?
    var team: String?
    var service: String?
    var interface: String?
    var ca: String?
    var proxy: String?
    var feedback: String?
    var console: String?
    var consoleToken: String?

    /// Makes the app, reading its files.
    ///
    /// `common` is the relay's environment, where this names none. `place` is the file and line, for errors.
    /// - Throws: ``CommandError``.
    func app(_ common: PushEnvironment, at place: String) throws -> RelayApp {
        func wrong(_ words: String) -> CommandError { CommandError(.configuration, "\(place): \(words)") }
        guard let environment = self.environment.map({ PushEnvironment(rawValue: $0) }) ?? common else {
            throw wrong("`environment` must be production or sandbox")
        }
        func hostPort(_ text: String, _ name: String, _ port: Int) throws -> HostPort {
            guard let found = HostPort(text, defaultPort: port) else {
                throw wrong(
                    "`\(name)` must be a host and a port, like \(HostPort.example(insteadOf: text, port: port))"
                )
            }
            guard let host = environment.serverName(of: found.host) else {
                throw wrong("`environment: sandbox` needs a host name in `\(name)`, and \(found.host) is an address")
            }
            return HostPort(host: host, port: found.port)
        }
        let topics = topics + (topic.map { [$0] } ?? [])
        for topic in topics where Topic(topic) == nil {
            throw wrong("\(topic.debugDescription) is not a topic, like com.example.chat")
        }
        let endpoint =
            try service.map { try hostPort($0, "service", interface == "binary" ? 2195 : 2197) }
            ?? RelayApp.apple(environment)
        var app = RelayApp(
            name: name ?? (service == nil ? "apple" : "herald"),
            topics: topics,
            environment: environment,
            service: endpoint,
            credential: try credential(wrong)
        )
        app.interface = try interface(of: app, topics: topics, wrong)
        app.authorities = try ca.map { path in
            do {
                return try PEMFile(try SafeFile.read(path)).certificateText()
            } catch let fault as PEMFault {
                throw wrong("\(path), which `ca` names, cannot be used: \(fault)")
            }
        }
        if let proxy {
            do {
                app.proxy = try ProviderProxy(proxy)
            } catch let error as ProviderError {
                throw wrong(error.message)
            }
        }
        if let feedback {
            guard case .certificate = app.credential.kind else {
                throw wrong("the feedback service knows providers by their certificate: give `certificate`, not `key`")
            }
            guard !topics.isEmpty else { throw wrong("the feedback service names no topic: give `topic` too") }
            app.feedback = try hostPort(feedback, "feedback", 2196)
        }
        if let console {
            guard WebAddress.read(console) != nil else {
                throw wrong(
                    "`console` must be an address like http://127.0.0.1:2190 or https://push.example.com:2190, without a token: "
                        + "that is in the file of `console-token`"
                )
            }
            guard let consoleToken else { throw wrong("`console` needs `console-token`: the file run/admin.token") }
            _ = try TokenFile.read(consoleToken)
            app.journal = RelayApp.Journal(console: console, tokenFile: consoleToken)
        }
        return app
    }

    /// How the service is spoken to, and whether it can be with the rest.
    private func interface(
        of app: RelayApp,
        topics: [String],
        _ wrong: (String) -> CommandError
    ) throws -> RelayApp.Interface {
        guard let interface else { return .http2 }
        guard let named = RelayApp.Interface(rawValue: interface) else {
            throw wrong("`interface` must be http2 or binary")
        }
        guard named == .binary else { return named }
        guard case .certificate = app.credential.kind else {
            throw wrong("the binary interface knows providers by their certificate: give `certificate`, not `key`")
        }
        guard service != nil else {
            throw wrong(
                "Apple has shut its binary interface down: name another service in `service`, like localhost:2195"
            )
        }
        guard topics.count == 1 else {
            throw wrong("the binary interface sends to the certificate's topic alone: give that one in `topic`")
        }
        return named
    }

    private func credential(_ wrong: (String) -> CommandError) throws -> ProviderCredential {
        switch (certificate, key) {
        case (let certificate?, nil): return .certificate(pem: try SafeFile.read(certificate, isSecret: true))
        case (nil, let key?):
            guard let team else { throw wrong("`key` needs `team`") }
            guard let id = keyID ?? SendOptions.identifier(inNameOf: key) else { throw wrong("`key` needs `key-id`") }
            return .key(pem: try SafeFile.read(key, isSecret: true), id: id, team: team)
        default: throw wrong("give either `certificate`, or `key` with `key-id` and `team`")
        }
    }
}
