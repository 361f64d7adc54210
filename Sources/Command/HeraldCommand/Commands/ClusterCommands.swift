import ArgumentParser
import Foundation
import HeraldModel
import HeraldNATS
import HeraldService
import NIOCore

/// `herald cluster`: the replicated engine of several machines.
struct ClusterCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "cluster",
        abstract: "Set up and inspect a cluster of machines.",
        discussion: """
            Example:
              herald cluster nats-conf --peers nats1,nats2,nats3 --output nats
            """,
        subcommands: [
            ClusterNATSConf.self, ClusterStatus.self, ClusterNodes.self, ClusterEvict.self, ClusterBalance.self,
            ClusterImportCommand.self,
        ]
    )
}

/// `herald cluster nats-conf`: makes the configuration of a cluster's NATS servers.
struct ClusterNATSConf: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "nats-conf",
        abstract: "Make the configuration files of a cluster's NATS servers.",
        discussion: """
            Makes a file for each server, and herald.nk, the key of Herald's nodes. With these settings the servers \
            sync every write, admit nobody but Herald, and know each other. Without --output, prints them.

            Example:
              herald cluster nats-conf --peers nats1,nats2,nats3 --output nats
              nats-server --config nats/nats-nats1.conf
            """
    )

    @Option(
        help: ArgumentHelp("The host names or addresses of the servers, with commas between them.", valueName: "hosts")
    )
    var peers: String

    @Option(
        help: ArgumentHelp("The folder to make the files in; existing ones are not overwritten.", valueName: "folder")
    )
    var output: String?

    @Option(help: ArgumentHelp("The folder below which each server keeps its data.", valueName: "folder"))
    var store = "/var/lib/nats"

    @Option(help: ArgumentHelp("The size of what each server may keep on disk.", valueName: "GiB"))
    var storeSize = 10

    @Option(
        help: ArgumentHelp(
            "The folder with ca.pem, cert.pem and key.pem on each server's machine; turns TLS on.",
            valueName: "folder"
        )
    )
    var tls: String?

    private var names: [String] { peers.split(separator: ",").map { $0.trimmingCharacters(in: .whitespaces) } }

    func validate() throws {
        guard !names.isEmpty else { throw ValidationError("--peers names no server") }
        for name in names where !ServerSettings.isHostname(name) || name.contains("*") {
            throw ValidationError("\(name.debugDescription) is not a host name, nor an address")
        }
        guard Set(names).count == names.count else { throw ValidationError("--peers names a server twice") }
        guard names.count % 2 == 1 else {
            throw ValidationError(
                "--peers needs an odd number of servers: three survive the loss of one, and so do four"
            )
        }
        guard storeSize > 0 else { throw ValidationError("--store-size is at least 1") }
    }

    func run() throws {
        let seed = NKey.makeSeed()
        let files = NATSServerFiles(
            peers: names,
            // A server resolves a relative folder from where it is started.
            store: URL(fileURLWithPath: store).standardizedFileURL.path,
            storeSize: storeSize,
            tls: tls.map { URL(fileURLWithPath: $0).standardizedFileURL.path },
            publicKey: try NKey(seed: seed).publicKey,
            routePassword: NATSServerFiles.makePassword()
        )
        let key = (name: "herald.nk", text: "# The private key of Herald's nodes at NATS.\n\(seed)\n")
        guard let output else { return (files.files + [key]).forEach(print) }
        try FileManager.default.createDirectory(atPath: output, withIntermediateDirectories: true)
        let paths = (files.files + [key]).map { (path: "\(output)/\($0.name)", text: $0.text) }
        for file in paths { try OutputFile.check(file.path) }
        // Each server's file holds the password of the others.
        for file in paths { try SafeFile.write(Array(file.text.utf8), to: file.path, mode: 0o600, isNew: true) }
        for file in paths { Terminal.say(file.path) }
        Terminal.say("")
        Terminal.say("Copy each file to its machine, and start: nats-server --config FILE")
        Terminal.say("Then start Herald:")
        Terminal.say("  herald serve --cluster \(files.cluster) \\")
        Terminal.say("    --cluster-monitor \(files.monitors) \\")
        let credentials = "    --cluster-credentials \(ShellWord.quoted("\(output)/\(key.name)"))"
        guard tls != nil else { return Terminal.say(credentials) }
        Terminal.say("\(credentials) \\")
        Terminal.say("    --cluster-ca AUTHORITY.pem --cluster-certificate NODE.pem")
    }

    private func print(_ file: (name: String, text: String)) {
        Terminal.say("# ---- \(file.name)")
        Terminal.sayExactly(file.text)
    }
}
