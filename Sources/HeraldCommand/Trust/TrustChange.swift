import Foundation
import HeraldConsole
import HeraldMailbox
import HeraldModel
import HeraldTrust

/// How commands read and change what trust rests on.
///
/// The trust folder has a lock of its own, held while it is written, so a command does that itself, with a service or
/// without. A service is then told to read it again, and the command ends when it has: from then on what was issued is
/// good, and what was revoked is not.
enum TrustChange {
    /// Makes a change and sees it into effect.
    /// - Parameters:
    ///   - folder: The data folder.
    ///   - change: Gets the trust folder, and the moment by the clock of the service, if one runs.
    /// - Returns: What the change returned.
    /// - Throws: ``CommandError``.
    static func make<Outcome>(
        in folder: DataFolder,
        _ change: (TrustFolder, WallTime) throws -> Outcome
    ) async throws -> Outcome {
        switch try FolderLock.attempt(folder) {
        case .taken(let lock):
            defer { withExtendedLifetime(lock) {} }
            return try read(folder) { try change($0, ServiceClock().now()) }
        case .held:
            let service = ControlClient(folder: folder)
            let now = await moment(of: service)
            let outcome = try read(folder) { try change($0, now) }
            try await tell(service)
            return outcome
        }
    }

    /// Reads the trust folder.
    /// - Throws: ``CommandError``.
    static func read<Outcome>(_ folder: DataFolder, _ body: (TrustFolder) throws -> Outcome) throws -> Outcome {
        do {
            return try body(try TrustFolder.load(at: folder.path))
        } catch let error as TrustError {
            throw CommandError(error)
        }
    }

    /// Tells a service that the folder is another now.
    /// - Throws: ``CommandError`` that says that the change is made, and not yet in effect.
    static func tell(_ service: ControlClient) async throws {
        // Nobody listens where another command has the folder, or a service that has yet to read it all.
        guard access(service.folder.controlSocketPath, F_OK) == 0 else { return }
        do {
            try await service.post("/v1/trust/reload")
        } catch let error as CommandError {
            throw CommandError(
                error.code,
                "the change is made, but the process that works on \(service.folder.path) has not taken it over: "
                    + error.message
            )
        }
    }

    /// What time it is for a service whose clock an operator may have moved.
    ///
    /// One that does not say has the system's.
    static func moment(of service: ControlClient) async -> WallTime {
        let reading = try? await service.get("/v1/clock", as: ClockReading.self)
        return reading.flatMap { WallTime(rfc3339: $0.now) } ?? ServiceClock().now()
    }
}

extension CommandError {
    /// What is wrong with the trust folder, or with what was asked of it.
    init(_ error: TrustError) {
        let code: Code =
            switch error.code {
            case .invalidArgument, .unknownID, .alreadyRevoked, .noSigningKey, .badRequest, .notInvited, .tooMany:
                .refused
            case .unreadable, .unwritable: .file
            default: .folder
            }
        self.init(code, error.message)
    }
}
