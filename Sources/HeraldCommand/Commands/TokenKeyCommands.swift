import ArgumentParser
import Foundation
import HeraldModel
import HeraldTrust

/// `herald token keys`.
struct TokenKeys: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "keys",
        abstract: "List the keys under which device tokens are sealed.",
        discussion: """
            The newest mints; all that are not retired open. Where a service runs, OPENED
            says how many tokens it has opened under each key since it started: a key
            whose count stays at rest can be retired.

            Example:
              herald token keys --json
            """
    )

    @Flag(help: "Print JSON.")
    var json = false

    @OptionGroup var data: DataOptions

    func run() async throws {
        let folder = try data.folder()
        let ring = try TrustChange.read(folder) { try $0.tokenKeys() }
        let usage: TokenKeyRoute.Usage? =
            switch try FolderLock.attempt(folder) {
            case .taken: nil
            case .held: try? await ControlClient(folder: folder).post(TokenKeyRoute.path, body: [String: String]())
            }
        let records = TokenKeyRecord.list(ring, usage)
        if json { return try Terminal.sayJSON(records) }
        var table = TextTable(["ID", "CREATED", "OPENED", "RETIRED"])
        for record in records {
            table.add([
                record.id.description + (record.newest ? " (newest)" : ""), record.created,
                record.opened?.description ?? "-", record.retired ?? "-",
            ])
        }
        table.lines.forEach(Terminal.say)
        if let usage { Terminal.say("opened since \(usage.since)") }
    }
}

/// `herald token rotate`.
struct TokenRotate: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "rotate",
        abstract: "Add a key under which device tokens are sealed from now on.",
        discussion: """
            Tokens under the older keys stay good until their key is retired. Devices that
            are connected are told their new tokens now, others when they come, and tell
            them to their providers as they told the first ones.

            Example:
              herald token rotate
            """
    )

    @Flag(help: "Print JSON.")
    var json = false

    @OptionGroup var data: DataOptions

    func run() async throws {
        let ring = try await TrustChange.make(in: try data.folder()) { trust, now in
            try trust.updateTokenKeys { try $0.rotate(now: now) }
            return try trust.tokenKeys()
        }
        guard let newest = TokenKeyRecord.list(ring, nil).last else { return }
        if json { return try Terminal.sayJSON(newest) }
        Terminal.say("token key \(newest.id) mints device tokens from now on")
    }
}

/// `herald token retire`.
struct TokenRetire: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "retire",
        abstract: "End a key of device tokens, for ever.",
        discussion: """
            Tokens under it are answered 400 BadDeviceToken from now on, and a device that
            presents one is refused. See with `herald token keys` first whether any is
            still in use.

            Example:
              herald token retire 1
            """
    )

    @Argument(help: "The key's number, as `herald token keys` shows it.")
    var id: UInt32

    @Flag(help: "Print JSON.")
    var json = false

    @OptionGroup var data: DataOptions

    func run() async throws {
        let ring = try await TrustChange.make(in: try data.folder()) { trust, now in
            try trust.updateTokenKeys { try $0.retire(id, now: now) }
            return try trust.tokenKeys()
        }
        guard json else { return Terminal.say("token key \(id) is retired") }
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
    /// How many tokens were opened under it since the service started; nil where none runs, or the key is retired.
    let opened: UInt64?

    private enum CodingKeys: String, CodingKey {
        case id
        case created
        case newest
        case retired
        case opened
    }

    static func list(_ ring: TokenKeyRing, _ usage: TokenKeyRoute.Usage?) -> [TokenKeyRecord] {
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

    /// What is not there is null, as in every list.
    func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encode(id, forKey: .id)
        try container.encode(created, forKey: .created)
        try container.encode(newest, forKey: .newest)
        try container.encode(retired, forKey: .retired)
        try container.encode(opened, forKey: .opened)
    }
}
