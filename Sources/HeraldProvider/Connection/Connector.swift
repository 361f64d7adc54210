import NIOCore
import NIOPosix
import NIOSSL

/// Makes connections: every address that the name has, in turn, asked for anew each time.
struct Connector: Sendable {
    let eventLoop: any EventLoop
    let context: NIOSSLContext
    let host: String
    let port: Int
    let timeout: Duration

    /// Connects, and says on the event loop what came of it.
    ///
    /// The TLS handshake follows; its end comes to the link.
    /// - Parameters:
    ///   - makeLink: Makes the handler of one connection; several are tried at a time where the first is slow.
    ///   - done: Called once, on the event loop.
    func connect<Link: ChannelHandler & SendableMetatype>(
        makeLink: @escaping @Sendable () -> Link,
        done: @escaping @Sendable (Result<NIOLoopBound<Link>, any Error>) -> Void
    ) {
        // An address has no name to ask for; it is compared with those in the certificate all the same.
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
            .connect(host: host, port: port)
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
