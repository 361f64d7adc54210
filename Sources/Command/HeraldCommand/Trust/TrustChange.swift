import Foundation
import HeraldConsole
import HeraldMailbox
import HeraldModel
import HeraldService
import HeraldStores
import HeraldTrust

/// Reads and changes the trust folder for commands.
///
/// A command writes the folder itself, under the folder's own lock, and then asks the running service to reload it. When
/// the command ends, its change is in effect.
enum TrustChange {
    /// Makes a change and waits until it is in effect.
    ///
    /// `done` is the change in words, for the error if the service has not applied it. `change` gets the time of the
    /// service if one runs. `tell` writes or prints the outcome, also if the service does not apply the change: a new
    /// secret is nowhere else.
    /// - Throws: ``CommandError`` or `TrustError`.
    @discardableResult
    static func make<Outcome>(
        in folder: DataFolder,
        done: String = "the change is on disk",
        _ change: (TrustFolder, WallTime) async throws -> Outcome,
        tell: (Outcome) async throws -> Void = { _ in }
    ) async throws -> Outcome {
        switch try FolderLock.attempt(folder) {
        case .taken(let lock):
            defer { withExtendedLifetime(lock) {} }
            let outcome = try await read(folder) { try await change($0, ServiceClock().now()) }
            try await tell(outcome)
            return outcome
        case .held:
            let service = ControlClient(folder: folder)
            let now = await now(of: service)
            let outcome = try await read(folder) { try await change($0, now) }
            try await tell(outcome)
            try await reload(service, done: done)
            await tellIfUnshared(service)
            return outcome
        }
    }

    /// Reads the trust folder.
    /// - Throws: `TrustError`.
    static func read<Outcome>(
        _ folder: DataFolder,
        _ body: (TrustFolder) async throws -> Outcome
    ) async throws -> Outcome {
        try await body(try TrustFolder.load(at: folder.path, store: TrustDatabase.open))
    }

    /// Asks a service to reload the folder.
    /// - Throws: ``CommandError`` if the change is not in effect yet.
    static func reload(_ service: ControlClient, done: String = "the change is on disk") async throws {
        do {
            _ = try await service.ask(AdminAPI.reloadTrust)
        } catch let error as CommandError where error.code == .noService {
            // Another command holds the folder, or a service that has not loaded it yet.
        } catch let error as CommandError {
            throw CommandError(
                error.code,
                "\(done), but the running service may not know it yet: \(error.message)"
            )
        }
    }

    /// Says on standard error if the other nodes of a cluster do not learn of a change now.
    private static func tellIfUnshared(_ service: ControlClient) async {
        let state = try? await service.ask(AdminAPI.trustSharing)
        guard let problem = state?.problem else { return }
        Terminal.complain(
            "herald: the other nodes do not know of this yet (\(problem)): this node tells them when it can"
        )
    }

    /// The time of the service of a folder if one runs, else the system's.
    static func now(in folder: DataFolder) async throws -> WallTime {
        switch try FolderLock.attempt(folder) {
        case .taken: ServiceClock().now()
        case .held: await now(of: ControlClient(folder: folder))
        }
    }

    /// The time of a service, whose clock may have been moved; the system's if it does not answer.
    static func now(of service: ControlClient) async -> WallTime {
        let reading = try? await service.ask(AdminAPI.clock)
        return reading.flatMap { WallTime(rfc3339: $0.now) } ?? ServiceClock().now()
    }
}
