import ArgumentParser
import Foundation
import HeraldConsole
import HeraldService
import HeraldTrust

/// `herald device label`.
struct DeviceLabel: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "label",
        abstract: "Give a device labels, or take some away.",
        discussion: """
            A label has a name and a value. An empty value takes the label away.

            Example:
              herald device label k7m2x9wqh4tb room=hall floor=2
              herald device label k7m2x9wqh4tb room=
            """
    )

    @Argument(help: "The device's identifier, as `herald device list` shows it.")
    var id: String

    @Argument(help: ArgumentHelp("Labels; without one, the command shows the device's.", valueName: "name=value"))
    var labels: [String] = []

    @OptionGroup var data: DataOptions

    func validate() throws {
        for label in labels where !label.utf8.contains(UInt8(ascii: "=")) {
            throw ValidationError(label, isNot: "a label, like room=hall")
        }
    }

    func run() async throws {
        let folder = try data.folder()
        let device = try await TrustChange.read(folder) { trust in
            guard !labels.isEmpty else { return try await trust.devices.device(id) }
            return try await trust.devices.changeLabels(of: id) { [labels] all in
                for label in labels {
                    let name = String(label.utf8.prefix { $0 != UInt8(ascii: "=") }) ?? ""
                    let value = String(label.utf8.drop { $0 != UInt8(ascii: "=") }.dropFirst()) ?? ""
                    all[name] = value.isEmpty ? nil : value
                }
            }
        }
        if data.json { return try Terminal.sayJSON(DeviceEntry(device)) }
        Terminal.say("device  \(device.id)")
        Terminal.say("labels  \(DeviceLabel.text(device.labels.all))")
    }

    /// Labels in one column: `floor=2,room=hall`.
    static func text(_ labels: [String: String]) -> String {
        labels.isEmpty ? "-" : labels.map { "\($0)=\($1)" }.sorted().joined(separator: ",")
    }
}

/// `herald device disconnect`.
struct DeviceDisconnect: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "disconnect",
        abstract: "Close a device's connection; the device comes back at once.",
        discussion: """
            Example:
              herald device disconnect k7m2x9wqh4tb
              herald device disconnect k7m2x9wqh4tb --stay-away
            """
    )

    @Argument(help: "The device's identifier, as `herald device list` shows it.")
    var id: String

    @Flag(help: "Send the device away for a while: Herald's agent for its longest pause, two minutes by default.")
    var stayAway = false

    @OptionGroup var data: DataOptions

    func run() async throws {
        let client = try ControlClient.ofService(in: data.folder())
        guard !id.isEmpty else { throw CommandError(.refused, "the identifier of a device is missing") }
        let device = try await client.ask(AdminAPI.disconnectDevice, [Ask.id(id), AdminAPI.staysAway(stayAway)])
        if data.json { return try Terminal.sayJSON(device) }
        Terminal.say("device \(device.id) is disconnected")
    }
}
