import ArgumentParser
import HeraldConsole
import HeraldModel
import HeraldService
import HeraldTrust

/// `herald device`: the devices that may connect.
struct Device: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Enroll, invite, list, label and revoke devices.",
        discussion: """
            Example:
              herald device enroll --name "Lamp in the hall" --out lamp.pem
              herald device invite --name "Lamp in the hall"
            """,
        subcommands: [
            DeviceEnroll.self, DeviceInvite.self, DeviceInvitations.self, DeviceWithdraw.self, DeviceList.self,
            DeviceLabel.self, DeviceDisconnect.self, DeviceRevoke.self,
        ]
    )
}

/// `herald device enroll`.
struct DeviceEnroll: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "enroll",
        abstract: "Issue a certificate for a device.",
        discussion: """
            The file holds the certificate, its chain and the private key. With --request
            the private key stays with its owner, and the file holds the rest. The command
            prints the device's identifier, which is also its MQTT client identifier.

            Example:
              herald device enroll --out lamp.pem
            """
    )

    @Option(help: ArgumentHelp("The file to write; it must not exist.", valueName: "file"))
    var out: String

    @Option(help: ArgumentHelp("The device's name for people.", valueName: "text"))
    var name: String?

    @Option(help: ArgumentHelp("A certificate signing request, in PEM or DER.", valueName: "file"))
    var request: String?

    @OptionGroup var data: DataOptions

    func run() async throws {
        let folder = try data.folder()
        try OutputFile.check(out)
        let request = try request.map(CredentialOptions.request)
        let issued = try await TrustChange.make(in: folder) { trust, now in
            try await trust.devices.enroll(name: name, request: request, now: now)
        }
        try OutputFile.write(issued.pem, to: out)
        if data.json { return try Terminal.sayJSON(RecordWithFile(record: DeviceEntry(issued.record), file: out)) }
        Terminal.say("device   \(issued.record.id)")
        Terminal.say("expires  \(issued.record.expires.rfc3339)")
        Terminal.say("file     \(out)")
    }
}

/// `herald device list`.
struct DeviceList: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "list",
        abstract: "List the devices, revoked ones too.",
        discussion: """
            The list is in the order of the identifiers. LAST SEEN and FROM are those of the
            newest connection to this node; the service writes them every five minutes.

            Example:
              herald device list --json
              herald device list --search room=hall
            """
    )

    @Option(
        help: ArgumentHelp("Only devices with this text in name, identifier or a label name=value.", valueName: "text")
    )
    var search: String?

    @OptionGroup var data: DataOptions

    func run() async throws {
        let folder = try data.folder()
        let heading = ["ID", "CREATED", "EXPIRES", "REVOKED", "LAST SEEN", "FROM", "LABELS", "NAME"]
        try await Terminal.sayList(heading: data.json ? nil : heading) { after in
            try await TrustChange.read(folder) { trust in
                let selection = DeviceSelection(after: after, limit: PageRequest.limits.upperBound, text: search)
                let page = try await trust.devices.page(selection)
                return (page.items.map { DeviceEntry($0) }, page.next)
            }
        } row: { (device: DeviceEntry) in
            [
                device.id, device.created, device.expires, device.revoked ?? "-", device.lastSeen ?? "-",
                device.lastAddress ?? "-", DeviceLabel.text(device.labels), device.name ?? "",
            ]
        }
    }
}

/// `herald device revoke`.
struct DeviceRevoke: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "revoke",
        abstract: "Revoke a device, for ever.",
        discussion: """
            It takes effect before the command returns, on an open connection too.

            Example:
              herald device revoke k7m2x9wqh4tb
            """
    )

    @Argument(help: "The device's identifier, as `herald device list` shows it.")
    var id: String

    @OptionGroup var data: DataOptions

    func run() async throws {
        let device = try await TrustChange.make(in: try data.folder(), done: "revoked") { trust, now in
            try await trust.devices.revoke(id, now: now)
        }
        if data.json { return try Terminal.sayJSON(DeviceEntry(device)) }
        Terminal.say("device \(device.id) is revoked")
    }
}
