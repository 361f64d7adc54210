import ArgumentParser
import Foundation
import HeraldMailbox
import HeraldModel
import HeraldStores
import HeraldTrust
import Logging

/// `herald token`: what device tokens are, and the keys under which they are sealed.
struct Token: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Look into a device token, and change the keys of device tokens.",
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
        abstract: "Say what a device token was minted for, and what a provider that uses it is told.",
        discussion: """
            A provider token (a JSON Web Token) may be given instead: it is verified as
            the provider API does.

            Example:
              herald token inspect TOKEN
            """
    )

    @Argument(help: "A device token, 64 hexadecimal digits; or a provider token.")
    var token: String

    @Flag(help: "Print JSON.")
    var json = false

    @OptionGroup var data: DataOptions

    func validate() throws {
        guard DeviceToken(token) != nil || token.contains(".") else {
            throw ValidationError("A device token has 64 hexadecimal digits, a provider token has two dots.")
        }
    }

    func run() async throws {
        let folder = try data.folder()
        guard let token = DeviceToken(token) else { return try await inspectProviderToken(folder) }
        var report = TokenReport(token, ring: try TrustChange.read(folder) { try $0.tokenKeys() })
        if let device = report.deviceNumber, let app = report.appNumber {
            report.registration = try await standing(Slot(device: DeviceNumber(device), app: AppNumber(app)), folder)
        }
        if json { return try Terminal.sayJSON(report) }
        Terminal.say(report.verdict)
        guard report.opens else { return }
        Terminal.say("device      \(report.registration?.device ?? "unknown")")
        Terminal.say("topic       \(report.registration?.topic ?? "unknown")")
        Terminal.say("generation  \(report.generation ?? 0)")
        Terminal.say("token key   \(report.key ?? 0)")
    }

    /// From the running service, or from its store where none runs.
    private func standing(_ slot: Slot, _ folder: DataFolder) async throws -> TokenReport.Standing? {
        switch try FolderLock.attempt(folder) {
        case .taken(let lock):
            defer { withExtendedLifetime(lock) {} }
            let path = folder.storePath + "/herald.db"
            // A service that never ran has no store, and this is no reason to make one.
            guard access(path, F_OK) == 0 else { return nil }
            return TokenReport.Standing(slot, in: try await snapshot(path))
        case .held:
            let question = TokenReport.Question(deviceNumber: slot.device.value, appNumber: slot.app.value)
            do {
                return try await ControlClient(folder: folder).post(TokenRoute.path, body: question)
            } catch let error as CommandError where error.code == .refused {
                return nil
            }
        }
    }

    private func snapshot(_ path: String) async throws -> RegistrySnapshot {
        do {
            let store = try SQLiteStore(
                path: path,
                clock: ServiceClock(),
                logger: Logger(label: "herald.store", factory: { _ in SwiftLogNoOpLogHandler() }),
                onFatal: { _ in }
            )
            let snapshot = try await store.loadRegistry()
            await store.close()
            return snapshot
        } catch let error as StoreError {
            throw CommandError(.folder, error.message)
        }
    }

    private func inspectProviderToken(_ folder: DataFolder) async throws {
        let book = try TrustChange.read(folder) { try $0.credentialBook() }
        let now: WallTime
        switch try FolderLock.attempt(folder) {
        case .taken: now = ServiceClock().now()
        case .held: now = await TrustChange.moment(of: ControlClient(folder: folder))
        }
        let report = ProviderTokenReport(
            ProviderTokenVerifier(book: book).verify(Array(token.utf8), now: now),
            topics: { book.key($0)?.topics ?? [] }
        )
        if json { return try Terminal.sayJSON(report) }
        Terminal.say(report.rejection.map { "\($0): \(report.why ?? "")" } ?? "good until \(report.expires ?? "")")
        guard let key = report.key, let team = report.team else { return }
        Terminal.say("key     \(key)")
        Terminal.say("team    \(team)")
        let topics = report.topics ?? []
        Terminal.say("topics  \(topics.isEmpty ? "all of the team's" : topics.joined(separator: ", "))")
    }
}

/// What a provider token is worth.
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
