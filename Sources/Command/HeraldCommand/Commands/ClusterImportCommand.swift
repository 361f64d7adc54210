import ArgumentParser
import Foundation
import HeraldCluster
import HeraldModel
import HeraldService
import HeraldTrust

/// `herald cluster import`: makes a cluster of a single machine.
struct ClusterImportCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "import",
        abstract: "Take the data folder of a single machine into a new cluster.",
        discussion: """
            Stop the service first. Devices, registrations, channels and waiting notifications go to the NATS servers, \
            which must have no cluster yet, and so do authorities, keys and the ledger. Every device token stays valid. \
            The folder becomes that of the first node. Repeat an interrupted import: until it is whole, no node starts.

            Takes the settings of the cluster from the options, from the environment, and from the file of --config.

            Example:
              herald cluster import /var/lib/herald --config /etc/herald/herald.yaml
            """
    )

    @Argument(help: ArgumentHelp("The data folder of the stopped service.", valueName: "folder"))
    var folder: String

    @OptionGroup var access: ClusterAccess

    @Flag(help: "Print JSON.")
    var json = false

    func run() async throws {
        umask(0o077)
        let configuration = try access.settings()
        let path = DataFolder(path: folder).path
        try DataFolder(path: path).checkOwner()
        let folder = try DataFolder.existing(path)
        try folder.check()
        let summary = try await FolderImport(configuration: configuration, folder: folder).run()
        if json { return try Terminal.sayJSON(summary) }
        Terminal.say("imported       \(path)")
        summary.lines.forEach(Terminal.say)
        ClusterImport.Summary.next(path).forEach(Terminal.say)
    }
}

extension ClusterImport.Summary {
    /// The counts, for people.
    var lines: [String] {
        [
            "devices        \(devices)", "apps           \(apps)", "registrations  \(registrations)",
            "channels       \(channels)", "notifications  \(notifications) waiting",
        ]
    }

    /// The next steps, for people.
    static func next(_ folder: String) -> [String] {
        [
            "cluster key    \(TrustLayout(data: folder).clusterKey)", "",
            "The folder is that of the cluster's first node now: start the service on it, with the same settings.",
            "Each further node starts with an empty folder and a copy of the cluster key (--cluster-key).",
        ]
    }
}
