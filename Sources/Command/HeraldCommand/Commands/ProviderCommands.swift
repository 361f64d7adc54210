import ArgumentParser
import Foundation
import HeraldConsole
import HeraldModel
import HeraldService
import HeraldTrust

/// `herald provider`: what providers prove themselves with.
struct Provider: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Make, list and revoke the credentials of providers.",
        discussion: """
            A provider authenticates with a certificate, which names its topics, or with
            tokens that it signs with a key.

            Example:
              herald provider certificate --topic com.example.chat --out chat.pem
              herald provider key --team TEAM000001 --out .
            """,
        subcommands: [ProviderCertificate.self, ProviderKeyCommand.self, ProviderList.self, ProviderRevoke.self]
    )
}

/// `herald provider certificate`.
struct ProviderCertificate: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "certificate",
        abstract: "Issue a certificate for a provider.",
        discussion: """
            The file holds the certificate, its chain and the private key. With --request
            the private key stays with its owner, and the file holds the rest. With one
            topic, notifications need not name it.

            Example:
              herald provider certificate --topic com.example.chat --out chat.pem
            """
    )

    @Option(
        help: ArgumentHelp("A topic that the provider may send to; may be repeated.", valueName: "id"),
        transform: CredentialOptions.topic
    )
    var topic: [Topic] = []

    @Option(help: ArgumentHelp("The team of the provider.", valueName: "id"), transform: CredentialOptions.team)
    var team: String?

    @Option(
        help: ArgumentHelp("production, sandbox or both. (default: both)", valueName: "environment"),
        transform: CredentialOptions.environments
    )
    var environment: Set<PushEnvironment> = Set(PushEnvironment.allCases)

    @Option(help: ArgumentHelp("A certificate signing request, in PEM or DER.", valueName: "file"))
    var request: String?

    @Option(help: ArgumentHelp("How long the certificate is valid, in days.", valueName: "days"))
    var days = ProviderCredentials.certificateDays

    @Option(help: ArgumentHelp("The file to write; it must not exist.", valueName: "file"))
    var out: String

    @OptionGroup var data: DataOptions

    func validate() throws {
        guard !topic.isEmpty else { throw ValidationError("Missing expected argument '--topic <id>'") }
        guard ProviderCredentials.allowedDays.contains(days) else {
            throw ValidationError("--days is a number from 1 to \(ProviderCredentials.allowedDays.upperBound).")
        }
    }

    func run() async throws {
        let folder = try data.folder()
        try OutputFile.check(out)
        let request = try request.map(CredentialOptions.request)
        try await TrustChange.make(in: folder) { trust, now in
            try await trust.providers.issueCertificate(
                topics: topic,
                team: team,
                environments: environment,
                request: request,
                days: days,
                now: now
            )
        } tell: { issued in
            try OutputFile.write(issued.pem, to: out, undo: "herald provider revoke \(issued.record.id)")
            if data.json {
                return try Terminal.sayJSON(RecordWithFile(record: CredentialEntry(issued.record), file: out))
            }
            Terminal.say("certificate  \(issued.record.id)")
            Terminal.say("topics       \(issued.record.topics.map(\.name).joined(separator: ", "))")
            Terminal.say("expires      \(issued.record.expires?.rfc3339 ?? "never")")
            Terminal.say("file         \(out)")
        }
    }
}

/// `herald provider key`.
struct ProviderKeyCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "key",
        abstract: "Make a key with which a provider signs its tokens.",
        discussion: """
            The command writes the key into the folder as AuthKey_<key id>.p8; the service
            keeps only its public part. Without a topic the key is valid for the whole
            team: for every topic that no other team owns. With --public-key the private key
            stays with its owner, who signs with it under the key id that the command prints.

            Example:
              herald provider key --team TEAM000001 --topic com.example.chat --out .
              herald provider key --team TEAM000001 --public-key public.pem
            """
    )

    @Option(help: ArgumentHelp("The team of the provider.", valueName: "id"), transform: CredentialOptions.team)
    var team: String

    @Option(
        help: ArgumentHelp("A topic that the key is limited to; may be repeated.", valueName: "id"),
        transform: CredentialOptions.topic
    )
    var topic: [Topic] = []

    @Option(
        help: ArgumentHelp("production, sandbox or both. (default: both)", valueName: "environment"),
        transform: CredentialOptions.environments
    )
    var environment: Set<PushEnvironment> = Set(PushEnvironment.allCases)

    @Option(help: ArgumentHelp("The folder for the key; created if it does not exist.", valueName: "folder"))
    var out: String?

    @Option(help: ArgumentHelp("A public key of P-256 in PEM, to take instead of making a key.", valueName: "file"))
    var publicKey: String?

    @OptionGroup var data: DataOptions

    func validate() throws {
        guard (out == nil) != (publicKey == nil) else {
            throw ValidationError("Give one of --out, for a new key, and --public-key.")
        }
    }

    func run() async throws {
        let folder = try data.folder()
        if let publicKey { return try await take(publicKey, folder) }
        guard let out else { return }
        if mkdir(out, 0o700) != 0, errno != EEXIST { throw SafeFile.failure("cannot make the folder", out) }
        try OutputFile.checkFolder(out)
        try await TrustChange.make(in: folder) { trust, now in
            try await trust.providers.makeKey(team: team, topics: topic, environments: environment, now: now)
        } tell: { issued in
            let file = (out as NSString).appendingPathComponent(issued.fileName)
            try OutputFile.write(issued.pem, to: file, undo: "herald provider revoke \(issued.credential.id)")
            if data.json {
                return try Terminal.sayJSON(RecordWithFile(record: CredentialEntry(issued.credential), file: file))
            }
            say(issued.credential)
            Terminal.say("file    \(file)")
        }
    }

    private func take(_ file: String, _ folder: DataFolder) async throws {
        let key = try SafeFile.read(file)
        try await TrustChange.make(in: folder) { trust, now in
            try await trust.providers.addKey(
                publicKey: key,
                team: team,
                topics: topic,
                environments: environment,
                now: now
            )
        } tell: { credential in
            if data.json { return try Terminal.sayJSON(CredentialEntry(credential)) }
            say(credential)
        }
    }

    private func say(_ credential: Credential) {
        Terminal.say("key     \(credential.id)")
        Terminal.say("team    \(team)")
        Terminal.say("topics  \(topic.isEmpty ? "all of the team's" : topic.map(\.name).joined(separator: ", "))")
    }
}

/// `herald provider list`.
struct ProviderList: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "list",
        abstract: "List the credentials of providers, revoked ones too.",
        discussion: """
            Example:
              herald provider list --json
            """
    )

    @OptionGroup var data: DataOptions

    func run() async throws {
        let folder = try data.folder()
        let heading = ["ID", "KIND", "TEAM", "ENVIRONMENTS", "EXPIRES", "REVOKED", "TOPICS"]
        try await Terminal.sayList(heading: data.json ? nil : heading) { after in
            try await TrustChange.read(folder) { trust in
                let page = try await trust.providers.page(after: after, limit: PageRequest.limits.upperBound)
                return (page.items.map { CredentialEntry($0) }, page.next)
            }
        } row: { (credential: CredentialEntry) in
            [
                credential.id, credential.kind.rawValue, credential.team ?? "-",
                credential.environments.map(\.rawValue).joined(separator: ","), credential.expires ?? "never",
                credential.revoked ?? "-",
                credential.topics.isEmpty ? "all of the team's" : credential.topics.map(\.name).joined(separator: ","),
            ]
        }
    }
}

/// `herald provider revoke`.
struct ProviderRevoke: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "revoke",
        abstract: "Revoke a certificate or a key of a provider, for ever.",
        discussion: """
            It takes effect before the command returns, on open connections too. A certificate
            that was issued after a restored backup is in no list: name its file.

            Example:
              herald provider revoke 7ZQ2M81KXA
              herald provider revoke --certificate chat.pem
            """
    )

    @Argument(help: "The credential's identifier, as `herald provider list` shows it.")
    var id: String?

    @Option(help: ArgumentHelp("The certificate, in PEM, instead of the identifier.", valueName: "file"))
    var certificate: String?

    @OptionGroup var data: DataOptions

    func validate() throws { try CredentialOptions.checkOne(id, certificate) }

    func run() async throws {
        let pem = try certificate.map { try SafeFile.read($0) }
        let credential = try await TrustChange.make(in: try data.folder(), done: "revoked") { trust, now in
            var id = id
            if let pem { id = try await LedgerEntry(trust).provider(pem, now: now) }
            return try await trust.providers.revoke(id ?? "", now: now)
        }
        if data.json { return try Terminal.sayJSON(CredentialEntry(credential)) }
        Terminal.say("\(credential.kind.rawValue) \(credential.id) is revoked")
    }
}
