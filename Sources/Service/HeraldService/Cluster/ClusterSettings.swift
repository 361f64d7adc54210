import Foundation
import HeraldCluster
import HeraldNATS

/// The settings of a cluster's node, beside those of every service.
package enum ClusterSettings: SettingGroup {
    package static let title = "Cluster"
    package static let rows: [Setting<ServerConfiguration>] = [
        .list(
            "cluster",
            \.cluster.servers,
            example: "nats://nats1, nats://nats2, nats://nats3",
            valueName: "servers",
            wanted: "addresses of NATS servers, like nats://nats1 or tls://nats1:4222, with commas between them",
            show: { $0.map(\.description) },
            make: { texts in
                try items(texts).map { text in
                    do {
                        return try NATSServerAddress(text)
                    } catch {
                        throw RefusedItem(text: text)
                    }
                }
            },
            help: {
                """
                The NATS servers that keep notifications and registrations, with commas between them. Without it, a \
                database in the data folder keeps them.
                """
            }
        ),
        Setting(
            "node",
            \.cluster.node,
            example: "herald1",
            valueName: "name",
            isLive: false,
            help: "The name of this node in its cluster, at each start the same. Empty: this machine's name.",
            show: { $0.isEmpty ? "\"\"" : $0 },
            read: { settings, key in
                guard let text = try settings.text(key), !text.isEmpty else { return nil }
                guard NodeName(text) != nil else { throw key.refusal(text, "1 to 64 of A-Z, a-z, 0-9, - and _") }
                return text
            }
        ),
        path("cluster-key", \.cluster.key, example: "/etc/herald/cluster.key") {
            """
            A copy of trust/cluster.key of another node, for a node with an empty data folder: it gets authorities, keys and \
            all that was issued from the cluster.
            """
        },
        path("cluster-credentials", \.cluster.credentials, example: "/etc/herald/herald.nk") {
            "A file that authenticates this node to the NATS servers: an nkey seed, or a .creds file."
        },
        path("cluster-ca", \.cluster.authorities, example: "/etc/herald/nats-ca.pem") {
            "A PEM file with the authorities of the NATS servers' certificates. Empty: those of the system."
        },
        path("cluster-certificate", \.cluster.certificate, example: "/etc/herald/nats-client.pem") {
            "A PEM file with this node's certificate and private key, for NATS servers that ask for one."
        },
        .list(
            "cluster-monitor",
            \.cluster.monitors,
            example: "http://nats1:8222, http://nats2:8222, http://nats3:8222",
            valueName: "addresses",
            wanted: "addresses like http://nats1:8222, without user and query, with commas between them",
            show: { $0.map(\.absoluteString) },
            make: { texts in
                try items(texts).map { text in
                    guard let url = WebAddress.read(text) else { throw RefusedItem(text: text) }
                    return url
                }
            },
            help: {
                """
                The monitoring addresses of all NATS servers. Herald reads there whether every write is synced, and \
                watches the servers' clocks.
                """
            }
        ),
        .flag("cluster-unverified", \.cluster.isUnverified) {
            "Start without cluster-monitor. Then nothing shows whether a power failure loses notifications."
        },
        .flag("cluster-accept-loss", \.cluster.acceptsLoss) {
            "Start although the NATS servers have lost what this node has seen there. For one start."
        },
        .number("cluster-partitions", \.cluster.partitions, in: ClusterLimits.partitions) {
            "Streams over which devices are spread. Counts when the cluster is created."
        },
        .number("cluster-replicas", \.cluster.replicas, in: 1...5) {
            "NATS servers that keep each notification. Counts when the cluster is created; 1 survives no server."
        },
    ]

    /// The items of texts with commas.
    private static func items(_ texts: [String]) -> [String] {
        texts.flatMap { $0.split(separator: ",").map { $0.trimmingCharacters(in: .whitespaces) } }
    }

    private static func path(
        _ name: String,
        _ path: Setting<ServerConfiguration>.Path<String>,
        example: String,
        help: () -> String
    ) -> Setting<ServerConfiguration> {
        Setting(
            name,
            path,
            example: example,
            valueName: "file",
            isLive: false,
            help: help(),
            show: { $0.isEmpty ? "\"\"" : $0 },
            read: { try $0.text($1) }
        )
    }
}
