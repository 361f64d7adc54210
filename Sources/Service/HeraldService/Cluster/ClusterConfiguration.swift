package import Foundation
import HeraldCluster
import HeraldIdentity
import HeraldModel
package import HeraldNATS
package import HeraldTrust

/// The cluster that a service is a node of.
package struct ClusterConfiguration: Equatable, Sendable {
    /// The NATS servers; none: the service stands alone, with its store in the data folder.
    package var servers: [NATSServerAddress] = []
    /// The name of this node in its cluster; empty: the machine's.
    package var node = ""
    /// The path of a file with an nkey seed, or of a `.creds` file; empty: none.
    package var credentials = ""
    /// The path of the certificates of the authorities that sign the servers' certificates; empty: those of the system.
    package var authorities = ""
    /// The path of this node's certificate chain and private key, in one PEM file; empty: none.
    package var certificate = ""
    /// The path of a copy of the cluster key; empty: that of the data folder, or a new one for a new cluster.
    package var key = ""
    /// The monitoring addresses of the servers.
    package var monitors: [URL] = []
    /// Whether the node starts although it cannot check that the servers sync every write.
    var isUnverified = false
    /// Whether the node starts although the servers have lost what it has seen.
    var acceptsLoss = false
    /// The number of partitions; counts when the cluster's streams are made.
    package var partitions = ClusterLimits.defaultPartitions
    /// The number of servers that keep each message; counts when the cluster's streams are made.
    package var replicas = 3

    /// The name of the node.
    /// - Throws: ``CommandError/Code/configuration`` if the machine's name cannot be one.
    func nodeName() throws -> NodeName {
        let text = node.isEmpty ? String(ProcessInfo.processInfo.hostName.prefix { $0 != "." }) : node
        guard let name = NodeName(text) else {
            throw CommandError(
                .configuration,
                "this machine's name (\(text)) cannot be a node's: name the node with --node"
            )
        }
        return name
    }

    /// Refuses a cluster whose syncs nothing shows, and a node without its cluster.
    /// - Throws: ``CommandError/Code/configuration``.
    package func check(_ folder: DataFolder) throws {
        guard !servers.isEmpty else {
            guard !FileManager.default.fileExists(atPath: folder.nodePath) else {
                throw CommandError(
                    .configuration,
                    "\(folder.path) is the folder of a cluster's node, and without its cluster the service would refuse "
                        + "its devices' tokens: name the NATS servers with --cluster, or the settings with --config"
                )
            }
            guard [credentials, certificate, authorities, key].allSatisfy(\.isEmpty), monitors.isEmpty else {
                throw CommandError(
                    .configuration,
                    "settings of a cluster are given, but not its NATS servers: name them with --cluster"
                )
            }
            return
        }
        if monitors.isEmpty, !isUnverified {
            throw CommandError(
                .configuration,
                "a cluster loses notifications if its NATS servers do not sync every write: name their monitoring addresses, "
                    + "so that Herald checks it (--cluster-monitor http://\(HostPort(host: servers[0].host, port: 8222)),…), or add --cluster-unverified"
            )
        }
        // Before it waits for a connection.
        _ = try clusterKey()
    }

    /// The settings of the connection to the servers.
    /// - Throws: ``CommandError`` for a file that cannot be read or used.
    package func connection() throws -> NATSConfiguration {
        var configuration = NATSConfiguration(
            servers: servers,
            // A command may run where no node can.
            name: (try? nodeName()).map { "herald \($0.text)" } ?? "herald",
            credential: try credential()
        )
        if !authorities.isEmpty || !certificate.isEmpty {
            let own =
                certificate.isEmpty
                ? nil
                : try Self.pem(certificate) { file throws(PEMFault) in
                    let (certificates, key) = try file.identity()
                    return (PEMFile.text(certificates: certificates), key.text)
                }
            let trusted =
                authorities.isEmpty
                ? nil
                : try Self.pem(authorities) { file throws(PEMFault) in
                    try file.certificateText()
                }
            configuration.tls = NATSTLS(
                authorities: trusted,
                certificates: own?.0,
                key: own?.1
            )
        }
        return configuration
    }

    /// The cluster key of the settings; nil if they name none.
    /// - Throws: ``CommandError/Code/configuration``.
    package func clusterKey() throws -> ClusterKey? {
        guard !key.isEmpty else { return nil }
        guard let key = ClusterKey(file: try Self.bytes(of: key, isSecret: true)) else {
            throw CommandError(
                .configuration,
                "\(key), which the setting cluster-key names, is not a cluster key: copy trust/cluster.key from the data folder of "
                    + "another node"
            )
        }
        return key
    }

    private func credential() throws -> NATSCredential {
        guard !credentials.isEmpty else { return .none }
        let text = String(decoding: try Self.bytes(of: credentials, isSecret: true), as: UTF8.self)
        do {
            if text.contains("BEGIN NATS USER JWT") { return try NATSCredential(creds: text) }
            let seed = text.split(whereSeparator: \.isNewline).first { !$0.hasPrefix("#") } ?? ""
            return .nkey(try NKey(seed: seed.trimmingCharacters(in: .whitespaces)))
        } catch {
            throw CommandError(.configuration, "cluster-credentials \(credentials): \(error.reason)")
        }
    }

    private static func bytes(of path: String, isSecret: Bool = false) throws -> [UInt8] {
        do {
            return try SafeFile.read(path, isSecret: isSecret)
        } catch let error as CommandError {
            throw CommandError(.configuration, "\(error.message): a setting cluster-… names it")
        }
    }

    private static func pem<Value>(_ path: String, _ read: (PEMFile) throws(PEMFault) -> Value) throws -> Value {
        let bytes = try bytes(of: path)
        do throws(PEMFault) {
            return try read(try PEMFile(bytes))
        } catch {
            throw CommandError(.configuration, "\(path), which a setting cluster-… names, cannot be used: \(error)")
        }
    }
}
