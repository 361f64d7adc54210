import Foundation
import HeraldNATS

/// The cluster that a service is a node of: the settings that begin with `cluster`, and `node`.
struct ClusterConfiguration: Equatable, Sendable {
    /// The NATS servers; none: the service stands alone, with its store in the data folder.
    var servers: [NATSServerAddress] = []
    /// The name of this node in its cluster.
    var node = ""
    /// The path of a NATS credentials file, or of a file with an nkey seed; empty: none.
    var credentials = ""
    /// The path of the certificates of the authorities that sign the servers' certificates; empty: those of the system.
    var authorities = ""
    /// The path of this node's certificate chain and private key, in one PEM file; empty: none.
    var certificate = ""
    /// The monitoring addresses of the servers.
    var monitors: [URL] = []
    /// Whether the node starts although it cannot check that the servers sync every write.
    var isUnverified = false
    /// The number of partitions; counts when the cluster's streams are made.
    var partitions = 4
    /// The number of servers that keep each message; counts when the cluster's streams are made.
    var replicas = 3

    /// The name of the machine, as a node's name: letters, digits, `-` and `_`.
    static var machineName: String {
        let name = ProcessInfo.processInfo.hostName.prefix { $0 != "." }
        return isNodeName(String(name)) ? String(name) : "node"
    }

    /// Whether a name can be a token of a NATS subject.
    static func isNodeName(_ name: String) -> Bool {
        (1...63).contains(name.utf8.count)
            && name.utf8.allSatisfy {
                switch $0 {
                case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                    UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "_"):
                    true
                default: false
                }
            }
    }
}
