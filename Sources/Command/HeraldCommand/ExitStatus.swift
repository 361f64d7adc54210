import ArgumentParser
import HeraldDevice
import HeraldIdentity
import HeraldRelay
import HeraldService
import HeraldStores

/// The exit status of a command that failed.
///
/// A service that no restart can mend has a status of its own. The units of systemd name these in
/// `RestartPreventExitStatus=`, so that systemd does not start it again and again.
enum ExitStatus {
    /// The service has refused this device for good (`EX_NOPERM` of sysexits.h).
    static let dismissed = ExitCode(77)
    /// Settings, files or folders have to be mended first (`EX_CONFIG`).
    static let configuration = ExitCode(78)

    /// The commands that run until they are stopped.
    private static let services: [any ParsableCommand.Type] = [Serve.self, RelayRun.self, AgentRun.self]

    /// The status for the error of a command.
    static func of(_ error: any Error, from command: any ParsableCommand.Type) -> ExitCode {
        guard services.contains(where: { $0 == command }) else { return .failure }
        if let error = error as? DeviceError, error.code == .dismissed { return dismissed }
        return isLasting(error) ? configuration : .failure
    }

    /// Whether an operator has to act: time alone mends nothing, as it does a full disk or a server that is away.
    private static func isLasting(_ error: any Error) -> Bool {
        switch error {
        case let error as CommandError:
            [.configuration, .folder, .unusableFile].contains(error.code)
        case let error as TrustError:
            [.folderMissing, .exposed, .foreignOwner, .damaged, .missing].contains(error.code)
        case let error as StoreError:
            [.foreignFile, .newerVersion, .damaged, .notWritable].contains(error.code)
        case let error as RelayStoreError: error.code == .unusable
        case let error as DeviceError: [.badIdentity, .badAuthority].contains(error.code)
        case let error as EnrollmentError: error.code == .folder
        default: false
        }
    }
}
