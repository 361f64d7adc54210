import ArgumentParser
import CVersion
import Configuration
import HeraldMailbox
import HeraldService

/// `herald doctor`: checks for faults of the machine and the data folder that stop the service.
struct Doctor: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Check the machine, the configuration and the data folder, and say what to do.",
        discussion: """
            One line for each thing: ok, warn or fail, and what to do. Exits 0 if nothing fails, else 1. It changes \
            nothing, and works while the service runs and before its first start. Root checks as the owner of the data \
            folder.

            Example:
              herald doctor --config /etc/herald/herald.yaml
              herald doctor --certificate next-server.pem
            """
    )

    @Option(
        help: ArgumentHelp(
            "A certificate with its chain and key that is to become trust/server.pem: whether all devices would accept it.",
            valueName: "file"
        )
    )
    var certificate: String?

    @OptionGroup var data: DataOptions

    func run() async throws {
        let configuration = try ServerConfiguration(
            Settings(commandLine: data.data.map { [.data: .string($0)] } ?? [:], file: data.config)
        )
        let folder = DataFolder(path: configuration.data)
        let findings = await DoctorRun(
            configuration: configuration,
            folder: folder,
            commit: String(cString: herald_commit()),
            now: ServiceClock().now(),
            next: certificate
        ) { try? await ControlClient(folder: folder).health() }
        .findings()
        let isFailed = findings.contains { $0.level == .fail }
        if data.json {
            try Terminal.sayJSON(DoctorReport(ok: !isFailed, checks: findings))
        } else {
            findings.map(\.line).forEach(Terminal.say)
        }
        if isFailed { throw ExitCode.failure }
    }
}

/// The findings as `--json` prints them.
private struct DoctorReport: Encodable {
    let ok: Bool
    let checks: [DoctorFinding]
}
