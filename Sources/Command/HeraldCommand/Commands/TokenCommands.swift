import ArgumentParser
import Foundation
import HeraldConsole
import HeraldIdentity
import HeraldMailbox
import HeraldModel
import HeraldService
import HeraldStores
import HeraldTrust
import Logging

/// `herald token`: device tokens, and the keys under which they are sealed.
struct Token: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Inspect a device token, and manage the keys of device tokens.",
        discussion: """
            Example:
              herald token inspect TOKEN
              herald token rotate
            """,
        subcommands: [TokenInspect.self, TokenKeys.self, TokenRotate.self, TokenRetire.self]
    )
}

/// `herald token inspect`.
struct TokenInspect: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "inspect",
        abstract: "Show the device and the app of a device token, and the answer that a provider gets for it.",
        discussion: """
            You may give a provider token (a JSON Web Token) instead: the command verifies it as the provider
            API does.

            Example:
              herald token inspect TOKEN
            """
    )

    @Argument(help: "A device token, 64 hexadecimal digits; or a provider token.")
    var token: String

    @OptionGroup var data: DataOptions

    func validate() throws {
        guard DeviceToken(token) != nil || token.contains(".") else {
            throw ValidationError("A device token has 64 hexadecimal digits, a provider token has two dots.")
        }
    }

    func run() async throws {
        let folder = try data.folder()
        guard let token = DeviceToken(token) else { return try await inspectProviderToken(folder) }
        var report = TokenReport(token, ring: try await TrustChange.read(folder) { try $0.tokenKeys() })
        if let device = report.deviceNumber, let app = report.appNumber {
            report.registration = try await registration(
                Slot(device: DeviceNumber(device), app: AppNumber(app)),
                folder
            )
        }
        if data.json { return try Terminal.sayJSON(report) }
        Terminal.say(report.verdict)
        guard report.opens else { return }
        Terminal.say("device      \(report.registration?.device ?? "unknown")")
        Terminal.say("topic       \(report.registration?.topic ?? "unknown")")
        Terminal.say("generation  \(report.generation ?? 0)")
        Terminal.say("token key   \(report.key ?? 0)")
    }

    /// From the running service, or from its store where none runs.
    private func registration(_ slot: Slot, _ folder: DataFolder) async throws -> TokenReport.RegistrationState? {
        switch try FolderLock.attempt(folder) {
        case .taken(let lock):
            defer { withExtendedLifetime(lock) {} }
            let path = folder.storePath + "/herald.db"
            // Opening the store would create one for a service that never ran.
            guard access(path, F_OK) == 0 else { return nil }
            return TokenReport.RegistrationState(slot, in: try await snapshot(path))
        case .held:
            let query = TokenReport.Query(deviceNumber: slot.device.value, appNumber: slot.app.value)
            do {
                return try await ControlClient(folder: folder).ask(AdminAPI.registration, body: query)
            } catch let error as CommandError where error.code == .refused {
                return nil
            }
        }
    }

    private func snapshot(_ path: String) async throws -> RegistrySnapshot {
        let store = try SQLiteStore(
            path: path,
            clock: ServiceClock(),
            logger: Logger(label: "herald.store", factory: { _ in SwiftLogNoOpLogHandler() }),
            onFatal: { _ in }
        )
        let snapshot = try await store.loadRegistry()
        await store.close()
        return snapshot
    }

    private func inspectProviderToken(_ folder: DataFolder) async throws {
        let book = try await TrustChange.read(folder) { try await $0.credentialTable() }
        let now: WallTime
        switch try FolderLock.attempt(folder) {
        case .taken: now = ServiceClock().now()
        case .held: now = await TrustChange.now(of: ControlClient(folder: folder))
        }
        let report = ProviderTokenReport(
            ProviderTokenVerifier(credentials: book).verify(Array(token.utf8), now: now),
            topics: { book.key($0)?.topics ?? [] }
        )
        if data.json { return try Terminal.sayJSON(report) }
        Terminal.say(report.rejection.map { "\($0): \(report.why ?? "")" } ?? "valid until \(report.expires ?? "")")
        guard let key = report.key, let team = report.team else { return }
        Terminal.say("key     \(key)")
        Terminal.say("team    \(team)")
        let topics = report.topics ?? []
        Terminal.say("topics  \(topics.isEmpty ? "all of the team's" : topics.joined(separator: ", "))")
    }
}

/// The verdict on a provider token.
private struct ProviderTokenReport: Encodable {
    var valid = false
    var rejection: String?
    var why: String?
    var key: String?
    var team: String?
    var topics: [String]?
    var environments: [String]?
    var issued: String?
    var expires: String?

    init(_ verdict: ProviderTokenVerdict, topics: (String) -> [Topic]) {
        switch verdict {
        case .refused(let rejection, let why):
            self.rejection = rejection.reason
            self.why = why
        case .unknownKey(let why):
            rejection = RefusalReason.invalidProviderToken.reason
            self.why = why
        case .valid(let identity):
            valid = true
            key = identity.keyID
            team = identity.team
            self.topics = topics(identity.keyID).map(\.name)
            environments = identity.environments.map(\.rawValue).sorted()
            issued = identity.issued.rfc3339
            expires = (identity.issued + ProviderToken.lifetime).rfc3339
        }
    }
}
