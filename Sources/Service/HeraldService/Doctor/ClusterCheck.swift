import HeraldCluster
import HeraldMailbox
import HeraldNATS
import Logging

/// Checks the NATS servers of a cluster's node that does not run, as its start does.
struct ClusterCheck {
    let configuration: ClusterConfiguration
    let folder: DataFolder

    /// - Returns: Nothing for a service that stands alone, as it should.
    func findings() async -> [DoctorFinding] {
        do {
            try configuration.check(folder)
            guard !configuration.servers.isEmpty else { return [] }
            let silent = Logger(label: "herald") { _ in SwiftLogNoOpLogHandler() }
            let link = try EngineLink(configuration, logger: silent)
            let findings = await findings(link)
            await link.connection.close()
            return findings
        } catch {
            return [Self.fault("\(error)")]
        }
    }

    private func findings(_ link: EngineLink) async -> [DoctorFinding] {
        do {
            try await link.waitUntilConnected()
        } catch {
            return [Self.fault("\(error)")]
        }
        let checks = EngineChecks(configuration: configuration, jetStream: link.jetStream, clock: ServiceClock())
        let found = await checks.servers().map { finding in
            switch finding.severity {
            case .warning: DoctorFinding.warn("cluster", finding.text, finding.remedy)
            case .refusal: DoctorFinding.fail("cluster", finding.text, finding.remedy)
            }
        }
        return found.isEmpty ? [.ok("cluster", "its NATS servers are as Herald needs them")] : found
    }

    /// An error says itself what to do.
    private static func fault(_ text: String) -> DoctorFinding {
        DoctorFinding(area: "cluster", level: .fail, text: text, remedy: nil)
    }
}
