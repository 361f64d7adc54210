import HeraldTrust
import NIOCore
import NIOPosix
import NIOSSL

/// Opens connections; each connect resolves the host name again and tries all its addresses.
struct Connector: Sendable {
    let eventLoop: any EventLoop
    let context: NIOSSLContext
    let host: String
    /// The address to connect to; nil for that of the host.
    var address: String?
    let port: Int
    let timeout: Duration

    /// Opens a TCP connection and starts TLS; the link gets the end of the handshake.
    /// - Parameters:
    ///   - makeLink: Makes the handler of one connection. Several addresses may be tried at once.
    ///   - done: Called once on the event loop when TCP is connected, or has failed.
    func connect<Link: ChannelHandler & SendableMetatype>(
        makeLink: @escaping @Sendable () -> Link,
        done: @escaping @Sendable (Result<NIOLoopBound<Link>, any Error>) -> Void
    ) {
        // TLS sends no server name for an address. NIOSSL still compares the address with the certificate.
        let isAddress = (try? SocketAddress(ipAddress: host, port: 0)) != nil
        ClientBootstrap(group: eventLoop)
            .connectTimeout(TimeAmount(timeout))
            .channelOption(.tcpOption(.tcp_nodelay), value: 1)
            .channelOption(.socketOption(.so_keepalive), value: 1)
            .channelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    let tls = try NIOSSLClientHandler(context: context, serverHostname: isAddress ? nil : host)
                    try channel.pipeline.syncOperations.addHandlers([tls, makeLink()])
                }
            }
            .connect(host: LocalName.resolvable(address ?? host), port: port)
            .whenComplete { result in
                done(
                    result.flatMap { channel in
                        Result {
                            let link = try channel.pipeline.syncOperations.handler(type: Link.self)
                            return NIOLoopBound(link, eventLoop: channel.eventLoop)
                        }
                    }
                )
            }
    }
}
