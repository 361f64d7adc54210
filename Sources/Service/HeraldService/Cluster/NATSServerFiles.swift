import Foundation
import NIOCore

/// The configuration files of the NATS servers of a cluster: one for each server.
///
/// The settings that Herald's promises rest on are explained in the files, so that an operator who edits one knows.
package struct NATSServerFiles {
    /// Host names or addresses of the servers; each server has one.
    package let peers: [String]
    /// The folder below which each server keeps its data.
    package let store: String
    /// The size of what a server may keep on disk, in GiB.
    package let storeSize: Int
    /// The folder with `ca.pem`, `cert.pem` and `key.pem` on each server's machine; nil: no TLS.
    package let tls: String?
    /// The public nkey of Herald's user.
    package let publicKey: String
    /// The password with which the servers recognize each other.
    package let routePassword: String

    static let clientPort = 4222
    static let routePort = 6222
    static let monitorPort = 8222

    /// The name of a server's file, and its content.
    package var files: [(name: String, text: String)] {
        peers.map { (name: "nats-\(Self.fileName($0)).conf", text: text(of: $0)) }
    }

    /// The setting `cluster` of a node of this cluster.
    package var cluster: String {
        peers.map { "\(tls == nil ? "nats" : "tls")://\(Self.host($0))" }.joined(separator: ",")
    }

    /// The setting `cluster-monitor` of a node of this cluster.
    package var monitors: String { peers.map { "http://\(Self.host($0)):\(Self.monitorPort)" }.joined(separator: ",") }

    package init(
        peers: [String],
        store: String,
        storeSize: Int,
        tls: String?,
        publicKey: String,
        routePassword: String
    ) {
        self.peers = peers
        self.store = store
        self.storeSize = storeSize
        self.tls = tls
        self.publicKey = publicKey
        self.routePassword = routePassword
    }

    /// A peer as the part of a file's name: an IPv6 address has no colons there.
    private static func fileName(_ peer: String) -> String { peer.replacing(":", with: "-") }

    /// A peer as a host of a URL.
    private static func host(_ peer: String) -> String { peer.contains(":") ? "[\(peer)]" : peer }

    /// A password for the routes between the servers.
    package static func makePassword() -> String {
        var random = SystemRandomNumberGenerator()
        return (0..<4).map { _ in String(random.next(), radix: 36) }.joined()
    }

    private func text(of peer: String) -> String {
        let (listen, advertise) =
            (try? SocketAddress(ipAddress: peer, port: 0)) == nil
            // The name may be one of a router, or of a container's host.
            ? ("0.0.0.0", "\nclient_advertise: \"\(peer):\(Self.clientPort)\"") : (Self.host(peer), "")
        let routeAdvertise = advertise.isEmpty ? "" : "\n  advertise: \"\(Self.host(peer)):\(Self.routePort)\""
        let routes = peers.map { "\"nats://herald-route:\(routePassword)@\(Self.host($0)):\(Self.routePort)\"" }
        return """
            # NATS server \(peer) of a Herald cluster, made by `herald cluster nats-conf`. It needs nats-server 2.15.1 or later.
            server_name: "\(peer)"
            listen: "\(listen):\(Self.clientPort)"\(advertise)
            # Herald reads here whether every write is synced. It needs no password: open it to Herald's nodes alone.
            http: "\(listen):\(Self.monitorPort)"
            \(tls.map(Self.tlsBlock) ?? "")
            jetstream {
              store_dir: "\(store)/\(Self.fileName(peer))"
              # Herald refuses to start without this: a server that syncs later loses what it has acknowledged when power fails.
              sync_interval: always
              max_file_store: \(storeSize)GiB
              max_memory_store: 256MiB
            }

            cluster {
              name: "herald"
              listen: "\(listen):\(Self.routePort)"\(routeAdvertise)
              authorization { user: "herald-route", password: "\(routePassword)", timeout: 5 }
              routes: [
                \(routes.joined(separator: "\n    "))
              ]\(tls.map { "\n  " + Self.tlsBlock($0).replacing("\n", with: "\n  ") } ?? "")
            }

            # Herald's only user. Its private key is in herald.nk.
            accounts {
              HERALD {
                jetstream: enabled
                users: [{
                  nkey: "\(publicKey)"
                  permissions {
                    publish { allow: ["hrld.>", "$JS.API.>", "$JS.FC.>"] }
                    subscribe { allow: ["hrld.>", "_INBOX.>"] }
                  }
                }]
              }
            }

            # A connection without an answer for this long is closed.
            ping_interval: "10s"
            ping_max: 2

            """
    }

    /// Certificates on both sides.
    private static func tlsBlock(_ folder: String) -> String {
        """
        tls {
          ca_file: "\(folder)/ca.pem"
          cert_file: "\(folder)/cert.pem"
          key_file: "\(folder)/key.pem"
          verify: true
        }
        """
    }
}
