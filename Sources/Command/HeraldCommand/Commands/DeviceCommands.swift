import ArgumentParser
import HeraldConsole
import HeraldIdentity
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
            DeviceLabel.self, DeviceDisconnect.self, DeviceRevoke.self, DeviceAnnouncement.self,
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
        try await TrustChange.make(in: folder) { trust, now in
            try await trust.devices.enroll(name: name, request: request, now: now)
        } tell: { issued in
            try OutputFile.write(issued.pem, to: out, undo: "herald device revoke \(issued.record.id)")
            if data.json {
                return try Terminal.sayJSON(RecordWithFile(record: DeviceEntry(issued.record), file: out))
            }
            Terminal.say("device   \(issued.record.id)")
            Terminal.say("expires  \(issued.record.expires.rfc3339)")
            Terminal.say("file     \(out)")
        }
    }
}

/// `herald device list`.
struct DeviceList: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "list",
        abstract: "List the devices, revoked ones too.",
        discussion: """
            The list is in the order of the identifiers. LAST SEEN and FROM are those of the
            newest connection; the service writes them every five minutes, and those of open
            connections every eight hours. In a cluster, connections to other nodes come as
            late, and without FROM. That is why --offline takes a day or more; --away asks the running service
            who is not connected at this moment, so an empty list says that everybody is back.

            Example:
              herald device list --json
              herald device list --label room=hall --offline 7d
              herald device list --away
            """
    )

    @Option(
        help: ArgumentHelp("Only devices with this text in name, identifier or a label name=value.", valueName: "text")
    )
    var search: String?

    @Flag(help: "Only devices that do not know every announced authority and address of the service.")
    var unready = false
    @Option(
        name: .customLong("label"),
        help: ArgumentHelp(
            "Only devices with this label, or with one of this name; repeat it for further ones.",
            valueName: "name[=value]"
        ),
        transform: LabelFilter.read
    )
    var labels: [LabelFilter] = []

    @Option(
        help: ArgumentHelp(
            "Only devices that were not seen for this long, a day or more (since they were made, if they never were); revoked ones are left out.",
            valueName: "time"
        ),
        transform: DeviceList.absence
    )
    var offline: Duration?

    @Flag(help: "Only devices that are not connected now, to any node; revoked ones are left out.")
    var away = false

    @Flag(help: "Only devices that have never connected; revoked ones are left out.")
    var unused = false

    @OptionGroup var data: DataOptions

    /// Reads a time of at least a day: connections of other nodes come so late.
    private static func absence(_ text: String) throws -> Duration {
        guard let time = DurationText.readWithUnit(text), time >= .seconds(86_400) else {
            throw ValidationError(text, isNot: "a time of at least a day, like 7d")
        }
        return time
    }

    func validate() throws {
        guard !away || offline == nil else { throw ValidationError("--away and --offline exclude each other.") }
    }

    func run() async throws {
        let folder = try data.folder()
        var all = DeviceSelection(limit: PageRequest.limits.upperBound, text: search)
        all.labels = labels
        all.isUnused = unused
        if let offline { all.unseenSince = try await TrustChange.now(in: folder) - offline }
        let told = unready ? ["ANNOUNCEMENT"] : []
        let heading = ["ID", "CREATED", "EXPIRES", "REVOKED", "LAST SEEN", "FROM"] + told + ["LABELS", "NAME"]
        let service = away ? try ControlClient.ofService(in: folder) : nil
        try await Terminal.sayList(heading: data.json ? nil : heading) { after in
            if let service {
                let page = try await service.page(AdminAPI.devices, after: after, awayParameters)
                return (page.items, page.next)
            }
            return try await TrustChange.read(folder) { [all] trust in
                var selection = all
                selection.after = after
                let complete = try trust.announcements.newest()?.content.complete
                if unready { selection.lacking = complete }
                let page = try await trust.devices.page(selection)
                return (page.items.map { DeviceEntry($0, complete: complete) }, page.next)
            }
        } row: { (device: DeviceEntry) in
            [
                device.id, device.created, device.expires, device.revoked ?? "-", device.lastSeen ?? "-",
                device.lastAddress ?? "-",
            ] + (unready ? [device.announcement?.rawValue ?? "-"] : [])
                + [DeviceLabel.text(device.labels), device.name ?? ""]
        }
    }
}

extension DeviceList {
    /// The same selection for a running service, which knows who is connected.
    private var awayParameters: [ParameterValue] {
        [AdminAPI.connected(false)] + labels.map { AdminAPI.label($0) }
            + (search.map { [AdminAPI.deviceSearch($0)] } ?? [])
            + (unready ? [AdminAPI.unready(true)] : []) + (unused ? [AdminAPI.unusedDevices(true)] : [])
    }
}

extension LabelFilter {
    /// Reads a label of a command line.
    /// - Throws: `ValidationError`.
    static func read(_ text: String) throws -> LabelFilter {
        guard let label = LabelFilter(text) else {
            throw ValidationError(text, isNot: LabelFilter.rule)
        }
        return label
    }
}

/// `herald device revoke`.
struct DeviceRevoke: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "revoke",
        abstract: "Revoke a device, for ever.",
        discussion: """
            It takes effect before the command returns, on an open connection too. If the device
            has never connected, its invitation gets the use back. A device that was enrolled
            after a restored backup is in no list: name the file of its certificate.

            Example:
              herald device revoke k7m2x9wqh4tb
              herald device revoke --certificate device.pem
            """
    )

    @Argument(help: "The device's identifier, as `herald device list` shows it.")
    var id: String?

    @Option(help: ArgumentHelp("The device's certificate, in PEM, instead of the identifier.", valueName: "file"))
    var certificate: String?

    @OptionGroup var data: DataOptions

    func validate() throws { try CredentialOptions.checkOne(id, certificate) }

    func run() async throws {
        let pem = try certificate.map { try SafeFile.read($0) }
        let (device, reopened) = try await TrustChange.make(in: try data.folder(), done: "revoked") { trust, now in
            var id = id
            if let pem { id = try await LedgerEntry(trust).device(pem, now: now).name }
            let device = try await trust.devices.revoke(id ?? "", now: now)
            return (device, try await trust.invitations.reopened(by: device, now: now))
        }
        if data.json { return try Terminal.sayJSON(DeviceEntry(device)) }
        Terminal.say("device \(device.id) is revoked")
        if let reopened { Terminal.say("it had never connected: invitation \(reopened.id) may be used once more") }
    }
}
