import ArgumentParser
import Foundation
import HeraldActivation
import HeraldConsole
import HeraldIdentity
import HeraldListener
import HeraldMailbox
import HeraldModel
import HeraldService
import HeraldTrust

/// `herald device invite`.
struct DeviceInvite: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "invite",
        abstract: "Make a code with which a device requests its certificate.",
        discussion: """
            A code works once, or with --uses for so many devices. It contains the fingerprint of the service's authority, by which the device recognizes \
            the service. The command shows the code only now: the service keeps a hash.

            With --device, the code is for a device that is known, and whose certificate has ended or is lost. The device keeps its identifier, \
            name, labels and apps, and providers keep its tokens.

            Example:
              herald device invite --name "Lamp in the hall" --valid 2h
              herald device invite --uses 500 --valid 7d --label site=berlin
              herald device invite --device k7m2x9wqh4tb
            """
    )

    /// The allowed lifetimes of a code.
    static let validity = Duration.seconds(60) ... .seconds(365 * 86_400)
    /// The allowed numbers of codes of one command.
    static let counts = 1...1000

    @Option(
        help: ArgumentHelp(
            "The device's name for people, instead of the one it gives itself; with --uses for all of them.",
            valueName: "text"
        )
    )
    var name: String?

    @Option(help: ArgumentHelp("How long the code is valid: 90s, 30m, 24h, 7d.", valueName: "time"))
    var valid = "24h"

    @Option(help: ArgumentHelp("Number of codes. (default: 1)", valueName: "n"))
    var count: Int?

    @Option(help: ArgumentHelp("Number of devices that may use each code.", valueName: "n"))
    var uses = 1

    @Option(
        name: .customLong("label"),
        help: ArgumentHelp(
            "A label of each device that uses the code; repeat it for further ones.",
            valueName: "name=value"
        )
    )
    var labels: [String] = []

    @Option(help: ArgumentHelp("The known device that the code is for.", valueName: "id"))
    var device: String?

    @OptionGroup var data: DataOptions

    func validate() throws {
        _ = try allLabels()
        if device != nil, name != nil || count != nil || uses != 1 || !labels.isEmpty {
            throw ValidationError(
                "With --device there is one code for one device, which keeps its name and labels: "
                    + "leave out --name, --count, --uses and --label."
            )
        }
        guard let valid = DurationText.read(valid), DeviceInvite.validity.contains(valid) else {
            throw ValidationError(valid, isNot: "a time from 60s to 365d, like 30m, 24h or 7d")
        }
        guard count.map(DeviceInvite.counts.contains) ?? true else {
            throw ValidationError("--count is a number from 1 to \(DeviceInvite.counts.upperBound).")
        }
        guard (1...Invitation.maximumUses).contains(uses) else {
            throw ValidationError("--uses is a number from 1 to \(Invitation.maximumUses).")
        }
    }

    func run() async throws {
        let folder = try data.folder()
        let lifetime = DurationText.read(valid) ?? .seconds(86_400)
        try await TrustChange.make(in: folder) { trust, now in
            try await trust.invitations.make(
                name: name,
                lifetime: lifetime,
                count: count ?? 1,
                uses: uses,
                labels: try allLabels(),
                for: device,
                now: now
            ).map { InvitationEntry($0.invitation, code: $0.code, at: now) }
        } tell: { issued in
            try await say(issued, folder)
        }
    }

    private func say(_ issued: [InvitationEntry], _ folder: DataFolder) async throws {
        if data.json {
            // Without --count an object, with it an array.
            if count == nil, let only = issued.first { return try Terminal.sayJSON(only) }
            return try Terminal.sayJSON(issued)
        }
        let place = await serviceAddress(folder)
        for (number, one) in issued.enumerated() {
            if number > 0 { Terminal.say("") }
            let code = one.code ?? ""
            Terminal.say("invitation  \(one.id)")
            Terminal.say("code        \(code)")
            Terminal.say("expires     \(one.expires)")
            if uses > 1 { Terminal.say("uses        \(uses)") }
            if let device = one.device { Terminal.say("device      \(device)") }
            let replace = device == nil ? "" : " --replace"
            Terminal.say("activate    HERALD_CODE=\(code) herald agent activate --service \(place)\(replace)")
        }
    }

    private func allLabels() throws -> [String: String] {
        var all: [String: String] = [:]
        for text in labels {
            guard let label = LabelFilter(text), let value = label.value else {
                throw ValidationError(text, isNot: "a label, like room=hall")
            }
            guard all.updateValue(value, forKey: label.name) == nil else {
                throw ValidationError("The label '\(LogText.escaped(label.name, limit: 64))' is given more than once.")
            }
        }
        return all
    }

    /// The service's address for the new device, as far as it is known here.
    private func serviceAddress(_ folder: DataFolder) async -> String {
        let running = ListeningAddresses.read(from: folder)
        let port = running?.activation ?? ServerConfiguration().activation.listener.port
        let name = try? await TrustChange.read(folder) { try $0.server.publicName() }
        return "https://\(HostPort(host: (name ?? nil) ?? running?.name ?? "localhost", port: port))"
    }
}

/// `herald device invitations`.
struct DeviceInvitations: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "invitations",
        abstract: "List the invitations, those that have ended too.",
        discussion: """
            USED leaves out devices that were revoked and had never connected: their uses are free again. DEVICE is the known \
            device of the invitation, or the newest one that has used it, also if it was revoked since.

            Example:
              herald device invitations --json
            """
    )

    @OptionGroup var data: DataOptions

    func run() async throws {
        let folder = try data.folder()
        let now = try await TrustChange.now(in: folder)
        let heading = ["ID", "CREATED", "EXPIRES", "STATE", "USED", "DEVICE", "NAME"]
        try await Terminal.sayList(heading: data.json ? nil : heading) { after in
            try await TrustChange.read(folder) { trust in
                let page = try await trust.invitations.page(after: after, limit: PageRequest.limits.upperBound)
                return (page.items.map { InvitationEntry($0, at: now) }, page.next)
            }
        } row: { (invitation: InvitationEntry) in
            [
                invitation.id, invitation.created, invitation.expires, invitation.state.rawValue,
                "\(invitation.used)/\(invitation.uses)", invitation.device ?? "-", invitation.name ?? "",
            ]
        }
    }
}

/// `herald device withdraw`.
struct DeviceWithdraw: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "withdraw",
        abstract: "Withdraw an invitation; devices that have used it stay.",
        discussion: """
            Example:
              herald device withdraw m4xk2p9w
            """
    )

    @Argument(help: "The invitation's identifier, as `herald device invitations` shows it.")
    var id: String

    @OptionGroup var data: DataOptions

    func run() async throws {
        let invitation = try await TrustChange.make(in: try data.folder()) { trust, now in
            InvitationEntry(try await trust.invitations.withdraw(id, now: now), at: now)
        }
        if data.json { return try Terminal.sayJSON(invitation) }
        Terminal.say("invitation \(id) is withdrawn")
    }
}
