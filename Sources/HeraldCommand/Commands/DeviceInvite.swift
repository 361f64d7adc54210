import ArgumentParser
import Foundation
import HeraldMailbox
import HeraldModel
import HeraldTrust

/// `herald device invite`.
struct DeviceInvite: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "invite",
        abstract: "Make a code with which a new device gets its certificate by itself.",
        discussion: """
            A code works once, and carries the fingerprint of the service's authority, so
            that the device knows the right service when it first meets it. It is shown
            here and never again: the service keeps a hash.

            Example:
              herald device invite --name "Lamp in the hall" --valid 2h
              herald device invite --list
              herald device invite --withdraw m4xk2p9w
            """
    )

    /// How long a code may be good.
    static let validity = Duration.seconds(60) ... .seconds(365 * 86_400)
    /// How many codes one command makes at most.
    static let counts = 1...1000

    @Option(help: ArgumentHelp("What people call the device. (default: what it calls itself)", valueName: "text"))
    var name: String?

    @Option(help: ArgumentHelp("How long the code is good: 90s, 30m, 24h, 7d.", valueName: "time"))
    var valid = "24h"

    @Option(help: ArgumentHelp("How many codes to make. (default: 1)", valueName: "n"))
    var count: Int?

    @Flag(help: "List the invitations, those that are over too.")
    var list = false

    @Option(help: ArgumentHelp("End an invitation that was not used.", valueName: "id"))
    var withdraw: String?

    @Flag(help: "Print JSON.")
    var json = false

    @OptionGroup var data: DataOptions

    func validate() throws {
        guard !list || withdraw == nil, !(list || withdraw != nil) || (name == nil && count == nil) else {
            throw ValidationError("--list and --withdraw go with no other option but --json and --data.")
        }
        guard let valid = DurationText.read(valid), DeviceInvite.validity.contains(valid) else {
            throw ValidationError(
                "'\(LogText.escaped(valid, limit: 64))' is not a time from 60s to 365d, like 30m, 24h or 7d."
            )
        }
        guard count.map(DeviceInvite.counts.contains) ?? true else {
            throw ValidationError("--count is a number from 1 to \(DeviceInvite.counts.upperBound).")
        }
    }

    func run() async throws {
        let folder = try data.folder()
        if list { return try await showAll(folder) }
        if let withdraw { return try await end(withdraw, folder) }
        let lifetime = DurationText.read(valid) ?? .seconds(86_400)
        let issued = try await TrustChange.make(in: folder) { trust, now in
            try trust.invite(name: name, lifetime: lifetime, count: count ?? 1, now: now)
        }
        if json {
            // One as an object, several as an array, however many they are.
            if count == nil, let only = issued.first { return try Terminal.sayJSON(only) }
            return try Terminal.sayJSON(issued)
        }
        let place = serviceAddress(folder)
        for (number, one) in issued.enumerated() {
            if number > 0 { Terminal.say("") }
            Terminal.say("invitation  \(one.invitation.id)")
            Terminal.say("code        \(one.code.text)")
            Terminal.say("expires     \(one.invitation.expires.rfc3339)")
            Terminal.say("activate    herald agent activate --service \(place) --code \(one.code.text)")
        }
    }

    /// Where the new device finds the service, as far as it can be told from here.
    private func serviceAddress(_ folder: DataFolder) -> String {
        let port = Doors.read(from: folder)?.activation ?? ServerConfiguration().activationPort
        let name = try? TrustChange.read(folder) { try $0.nameForOthers() }
        return "https://\(HostPort(host: (name ?? nil) ?? "localhost", port: port))"
    }

    private func showAll(_ folder: DataFolder) async throws {
        let invitations = try TrustChange.read(folder) { try $0.invitations() }
        if json { return try Terminal.sayJSON(invitations) }
        let now: WallTime =
            switch try FolderLock.attempt(folder) {
            case .taken: ServiceClock().now()
            case .held: await TrustChange.moment(of: ControlClient(folder: folder))
            }
        var table = TextTable(["ID", "CREATED", "EXPIRES", "STATE", "DEVICE", "NAME"])
        for invitation in invitations {
            table.add([
                invitation.id, invitation.created.rfc3339, invitation.expires.rfc3339,
                invitation.state(at: now).rawValue, invitation.used?.device.name ?? "-", invitation.name ?? "",
            ])
        }
        table.lines.forEach(Terminal.say)
    }

    private func end(_ id: String, _ folder: DataFolder) async throws {
        let invitation = try await TrustChange.make(in: folder) { trust, now in
            try trust.withdrawInvitation(id, now: now)
        }
        if json { return try Terminal.sayJSON(invitation) }
        Terminal.say("invitation \(id) is withdrawn")
    }
}
