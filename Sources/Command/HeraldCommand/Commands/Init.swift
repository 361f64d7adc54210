import ArgumentParser
import Foundation
import HeraldIdentity
import HeraldMailbox
import HeraldModel
import HeraldService
import HeraldStores
import HeraldTrust

/// `herald init`: makes a service's folder without starting it, adds names to its certificate, or renews it.
struct Init: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Make a service's folder, add names to its certificate, or renew it.",
        discussion: """
            The first start of `herald serve` does the same. With --as-apple the certificate also has the names of \
            Apple's push services. This is for client libraries in which Apple's host is fixed. The command prints how \
            to direct such clients to this service.

            A running service takes a new certificate up at once, and keeps its connections.

            Example:
              herald init --hostname push.example.com
              herald init --renew
            """
    )

    @Option(
        help: ArgumentHelp("A further name or address for the server certificate; may be repeated.", valueName: "name")
    )
    var hostname: [String] = []

    @Flag(help: "Add the names of Apple's push services.")
    var asApple = false

    @Flag(help: "Make the next server certificate now, with the same names. Herald does so itself in the last 90 days.")
    var renew = false

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
            trust = try await create(folder)
            withExtendedLifetime(lock) {}
        case .held:
            trust = try await create(folder)
            try await TrustChange.reload(ControlClient(folder: folder))
        }
        try report(InitReport(folder: folder, trust: trust))
    }

    private func create(_ folder: DataFolder) async throws -> TrustFolder {
        try await TrustFolder.create(
            at: folder.path,
            hostnames: hostname,
            asApple: asApple,
            renewing: renew,
            store: TrustDatabase.open,
            now: ServiceClock().now()
        )
    }

    /// A service under Apple's names must not be public.
    private func refusePublicAddress() throws {
        let settings = try Settings(file: data.config)
        guard let host = try settings.text(.host),
            let address = ListenScope.publicAddress(on: host, machine: ListenScope.machineAddresses())
        else { return }
        throw CommandError(
            .configuration,
            "--as-apple is for a service on your own network, and with the setting host (\(host)) the service would listen "
                + "on \(address), which is public: set host to a private address, or leave --as-apple out"
        )
    }

    private func report(_ report: InitReport) throws {
        if data.json { return try Terminal.sayJSON(report) }
        Terminal.say("data       \(report.data)")
        Terminal.say("authority  \(report.authority)")
        Terminal.say("names      \(report.names.joined(separator: ", "))")
        Terminal.say("expires    \(report.expires)")
        guard asApple else { return }
        // An absolute path: clients run in other folders.
        let authority = URL(fileURLWithPath: report.authority).standardizedFileURL.path
        AppleNamesGuide(authority: authority).lines.forEach(Terminal.say)
    }
}

/// The folder as `herald init --json` prints it.
private struct InitReport: Encodable {
    let data: String
    /// The path of the certificate that providers and devices have to trust.
    let authority: String
    let names: [String]
    let expires: String

    init(folder: DataFolder, trust: TrustFolder) throws {
        data = folder.path
        authority = folder.authorityPath
        let certificate = try trust.serverCertificate()
        names = certificate.names.map(\.description).sorted()
        expires = certificate.expires.rfc3339
    }
}
