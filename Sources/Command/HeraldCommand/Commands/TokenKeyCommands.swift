import ArgumentParser
import Foundation
import HeraldConsole
import HeraldModel
import HeraldService
import HeraldTrust

/// `herald token keys`.
struct TokenKeys: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "keys",
        abstract: "List the keys under which device tokens are sealed.",
        discussion: """
            The newest key seals new tokens, in a cluster once every node that runs has it; every key that is not retired \
            opens tokens. While a service runs, OPENED is \
            the number of tokens that it opened with each key since its start: a key whose number stays the same can be \
            retired.

            Example:
              herald token keys --json
            """
    )

    @OptionGroup var data: DataOptions

    func run() async throws {
        let folder = try data.folder()
        let ring = try await TrustChange.read(folder) { try $0.tokenKeys() }
        let usage: TokenKeyUsage? =
            switch try FolderLock.attempt(folder) {
            case .taken: nil
            case .held: try? await ControlClient(folder: folder).ask(AdminAPI.tokenKeys)
            }
        let records = TokenKeyRecord.list(ring, usage)
        if data.json { return try Terminal.sayJSON(records) }
        var table = TextTable(["ID", "CREATED", "OPENED", "RETIRED"])
        for record in records {
            table.add([
                record.id.description + note(record, usage), record.created,
                record.opened?.description ?? "-", record.retired ?? "-",
            ])
        }
        table.lines.forEach(Terminal.say)
        if let usage { Terminal.say("opened since \(usage.since)") }
    }

    private func note(_ record: TokenKeyRecord, _ usage: TokenKeyUsage?) -> String {
        guard record.newest else { return "" }
        return usage.map { $0.sealing == record.id } ?? true ? " (newest)" : " (newest, not used yet)"
    }
}

/// `herald token rotate`.
struct TokenRotate: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "rotate",
        abstract: "Add a key under which device tokens are sealed from now on.",
        discussion: """
            Tokens of older keys stay valid until their key is retired. Connected devices get their new tokens now, others \
            when they connect; their apps send them to their providers, like the first ones. In a cluster the key is used \
            when every node that runs has it.

            Example:
              herald token rotate
            """
    )

    @OptionGroup var data: DataOptions

    /// The time in which the other nodes of a cluster usually have the key.
    private static let patience = Duration.seconds(3)

    func run() async throws {
        let folder = try data.folder()
        let ring = try await TrustChange.make(in: folder) { trust, now in
            try await trust.updateTokenKeys { try $0.rotate(now: now) }
            return try trust.tokenKeys()
        }
        guard let newest = TokenKeyRecord.list(ring, nil).last else { return }
        let usage = try await usage(folder, until: newest.id)
        if data.json { return try Terminal.sayJSON(newest) }
        guard let usage, usage.sealing < newest.id else {
            return Terminal.say("token key \(newest.id) seals device tokens from now on")
        }
        let lacking = usage.lacking.joined(separator: ", ")
        Terminal.say(
            "token key \(newest.id) is made, and seals device tokens when every node that runs has it; it is missing at: "
                + (lacking.isEmpty ? "nodes that are joining" : lacking)
        )
    }

    /// The use of the keys when the new one seals, or after a while; nil if no service runs.
    private func usage(_ folder: DataFolder, until newest: UInt32) async throws -> TokenKeyUsage? {
        let end = ContinuousClock.now + Self.patience
        while true {
            guard case .held = try FolderLock.attempt(folder) else { return nil }
            let usage: TokenKeyUsage? = try? await ControlClient(folder: folder)
                .ask(AdminAPI.tokenKeys)
            guard let usage, usage.sealing < newest, .now < end else { return usage }
            try await Task.sleep(for: TrustSync.look)
        }
    }
}

/// `herald token retire`.
struct TokenRetire: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "retire",
        abstract: "Retire a key of device tokens, for ever.",
        discussion: """
            From now on, its tokens get 400 BadDeviceToken. Check with `herald token keys` first whether any is still \
            in use.

            Example:
              herald token retire 1
            """
    )

    @Argument(help: "The key's number, as `herald token keys` shows it.")
    var id: UInt32

    @OptionGroup var data: DataOptions

    func run() async throws {
        let ring = try await TrustChange.make(in: try data.folder(), done: "retired") { trust, now in
            try await trust.updateTokenKeys { try $0.retire(id, now: now) }
            return try trust.tokenKeys()
        }
        guard data.json else { return Terminal.say("token key \(id) is retired") }
        guard let record = TokenKeyRecord.list(ring, nil).first(where: { $0.id == id }) else { return }
        try Terminal.sayJSON(record)
    }
}

/// A key of device tokens, as commands print it.
private struct TokenKeyRecord: Encodable {
    let id: UInt32
    let created: String
    let newest: Bool
    let retired: String?
    /// Tokens opened with it since the service started; nil if no service runs, or the key is retired.
    let opened: UInt64?

    private enum CodingKeys: String, CodingKey {
        case id
        case created
        case newest
        case retired
        case opened
    }

    static func list(_ ring: TokenKeyRing, _ usage: TokenKeyUsage?) -> [TokenKeyRecord] {
        ring.keys.map { key in
            TokenKeyRecord(
                id: key.id,
                created: key.created.rfc3339,
                newest: key.id == ring.keys.last?.id,
                retired: key.retired?.rfc3339,
                opened: usage?.keys.first { $0.id == key.id }?.opened
            )
        }
    }

    /// Writes missing values as null, like every list.
    func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encode(id, forKey: .id)
        try container.encode(created, forKey: .created)
        try container.encode(newest, forKey: .newest)
        try container.encode(retired, forKey: .retired)
        try container.encode(opened, forKey: .opened)
    }
}
