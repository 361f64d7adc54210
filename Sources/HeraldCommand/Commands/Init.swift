import ArgumentParser
import Foundation
import HeraldMailbox
import HeraldTrust

/// `herald init`: what the first start of a service makes, without starting it; and names for its certificate, later.
struct Init: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Make a service's folder, or add names to its certificate.",
        discussion: """
            The first start of `herald serve` does the same. With --as-apple the
            certificate also has the names of Apple's push services, for clients that
            cannot be told another address, and the command prints how they are led here
            and made to trust the authority.

            Example:
              herald init --hostname push.example.com
            """
    )

    @Option(
        help: ArgumentHelp("A further name or address for the server certificate; may be repeated.", valueName: "name")
    )
    var hostname: [String] = []

    @Flag(help: "Add the names of Apple's push services.")
    var asApple = false

    @Flag(help: "Print JSON.")
    var json = false

    @OptionGroup var data: DataOptions

    func validate() throws {
        for name in hostname where ServerName(name) == nil {
            throw ValidationError("\(name.debugDescription) is not a host name, nor an address")
        }
    }

    func run() async throws {
        if asApple { try refusePublicAddress() }
        let folder = try data.folder(mayCreate: true)
        let trust: TrustFolder
        switch try FolderLock.attempt(folder) {
        case .taken(let lock):
            trust = try create(folder)
            withExtendedLifetime(lock) {}
        case .held:
            trust = try create(folder)
            try await TrustChange.tell(ControlClient(folder: folder))
        }
        try report(InitReport(folder: folder, trust: trust))
    }

    private func create(_ folder: DataFolder) throws -> TrustFolder {
        do {
            return try TrustFolder.create(
                at: folder.path,
                hostnames: hostname,
                asApple: asApple,
                now: ServiceClock().now()
            )
        } catch let error as TrustError {
            throw CommandError(error)
        }
    }

    /// A service that answers to Apple's names is for the network of the people who made it.
    private func refusePublicAddress() throws {
        let settings = try Settings(
            commandLine: [:],
            environment: ProcessInfo.processInfo.environment,
            file: data.config
        )
        guard let host = try settings.text(.host), ListenAddress.isPublic(host) else { return }
        throw CommandError(
            .configuration,
            "--as-apple is for a service on your own network, and the setting host makes this one listen on \(host): "
                + "set host to a private address, or leave --as-apple out"
        )
    }

    private func report(_ report: InitReport) throws {
        if json { return try Terminal.sayJSON(report) }
        Terminal.say("data       \(report.data)")
        Terminal.say("authority  \(report.authority)")
        Terminal.say("names      \(report.names.joined(separator: ", "))")
        guard asApple else { return }
        // Whole: the lines are for clients, which run in other folders.
        let authority = URL(fileURLWithPath: report.authority).standardizedFileURL.path
        AppleRecipe(authority: authority).lines.forEach(Terminal.say)
    }
}

/// What `herald init --json` prints.
private struct InitReport: Encodable {
    let data: String
    /// Where the certificate is that providers and devices are given to trust.
    let authority: String
    let names: [String]

    init(folder: DataFolder, trust: TrustFolder) throws {
        data = folder.path
        authority = folder.authorityPath
        do {
            names = try trust.serverCertificate().names.map(\.description).sorted()
        } catch let error as TrustError {
            throw CommandError(error)
        }
    }
}
