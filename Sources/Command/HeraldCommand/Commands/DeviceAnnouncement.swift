import ArgumentParser
import HeraldConsole
import HeraldModel
import HeraldService
import HeraldTrust

/// `herald device announcement`.
struct DeviceAnnouncement: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "announcement",
        abstract: "Show what devices are told of the service, and how many of them know it.",
        discussion: """
            The service announces the authorities in ca.pem and the addresses of device-addresses.
            Before you change the server's certificate or its address, all devices should be ready, or told by hand.

            Clients that follow no announcements stay silent. With --told and --told-label you say that you have given them the \
            new ca.pem and address yourself. The next authority or address makes them silent again.

            Example:
              herald device announcement
              herald device list --unready
              herald device announcement --told-label model=sensor
            """
    )

    @Flag(help: "Sign the announcement anew, so that devices with a newer one of a lost service take it.")
    var renew = false

    @Option(
        help: ArgumentHelp(
            "A device that you have told everything by hand, by its identifier; may be repeated.",
            valueName: "id"
        )
    )
    var told: [String] = []

    @Option(
        help: ArgumentHelp(
            "The same for the devices with this label that follow no announcements; with several, those that have all of them.",
            valueName: "name[=value]"
        ),
        transform: LabelFilter.read
    )
    var toldLabel: [LabelFilter] = []

    @OptionGroup var data: DataOptions

    func run() async throws {
        let folder = try data.folder()
        if renew {
            try await TrustChange.make(in: folder) { trust, now in try await trust.announcements.renew(now: now) }
        }
        if !told.isEmpty || !toldLabel.isEmpty {
            let count = try await TrustChange.make(in: folder) { trust, _ in
                try await trust.devices.tell(told, labels: toldLabel)
            }
            Terminal.complain("herald: devices that were told by hand: \(count)")
        }
        let transition = try await TrustChange.read(folder) { trust in
            try await ServiceTransition(trust, now: try await TrustChange.now(in: folder))
        }
        guard let entry = transition?.entry else {
            throw CommandError(.refused, "devices were told nothing yet: start the service")
        }
        if data.json { return try Terminal.sayJSON(entry) }
        let addresses = entry.addresses.map { "\($0.host):\($0.port):\($0.activation)" }
        Terminal.say("version    \(entry.version)")
        Terminal.say(
            "addresses  \(addresses.isEmpty ? "none: devices keep theirs" : addresses.joined(separator: ", "))"
        )
        for authority in entry.authorities {
            let use = authority.signs ? ", signs the server certificate" : ""
            Terminal.say("authority  \(authority.name), until \(authority.expires)\(use)")
        }
        let devices = entry.devices
        Terminal.say(
            "devices    \(devices.ready) ready, \(devices.told) told by hand, \(devices.behind) behind, "
                + "\(devices.silent) silent, \(devices.expired) expired"
        )
        for problem in entry.problems { Terminal.say("problem    \(problem)") }
    }
}
