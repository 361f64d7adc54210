import HeraldIdentity
import HeraldModel
import NIOCore
import NIOPosix
import NIOSSL

/// Opens connections; each connect resolves the host name again and tries all its addresses.
struct Connector: Sendable {
    let eventLoop: any EventLoop
    let context: NIOSSLContext
    /// The service's name or address, which its certificate must contain.
    let host: String
    /// Where to connect: the address of the host, or another one.
    let target: HostPort
    /// The proxy to go through; nil for a direct connection.
    let tunnel: ProviderProxy.Tunnel?
    let timeout: Duration

    /// Makes a connector, which offers `protocols` by ALPN.
    /// - Throws: ``ProviderError`` if the credential, the authority or the proxy is unusable.
    init(_ configuration: ProviderConfiguration, protocols: [String] = []) throws {
        eventLoop = MultiThreadedEventLoopGroup.singleton.next()
        context = try ProviderTLS.context(configuration, protocols: protocols)
        host = configuration.host
        target = HostPort(host: configuration.address ?? configuration.host, port: configuration.port)
        tunnel = try configuration.proxy.tunnel(to: target)
        timeout = configuration.timeout
    }

    /// The service in messages.
    var endpoint: String { HostPort(host: host, port: target.port).description }

    /// Opens a TCP connection and starts TLS; the link gets the end of the handshake.
    ///
    /// `done` is called once on the event loop when TCP is connected, or has failed.
    func connect<Link: ChannelHandler & SendableMetatype>(
        makeLink: @escaping @Sendable () -> Link,
        done: @escaping @Sendable (Result<NIOLoopBound<Link>, any Error>) -> Void
    ) {
        open { channel in
            let link = makeLink()
            try channel.pipeline.syncOperations.addHandler(link)
            return NIOLoopBound(link, eventLoop: channel.eventLoop)
        }
        .whenComplete(done)
    }

    /// Connects, through the proxy if there is one, starts TLS, and adds the handlers behind it.
    /// - Parameter prepare: Adds them, on the channel's event loop.
    /// - Returns: The result of `prepare`.
    func open<Value: Sendable>(
        _ prepare: @escaping @Sendable (any Channel) throws -> Value
    ) -> EventLoopFuture<Value> {
        let way = tunnel?.proxy ?? target
        return ClientBootstrap(group: eventLoop)
            .connectTimeout(TimeAmount(timeout))
            .channelOption(.tcpOption(.tcp_nodelay), value: 1)
            .channelOption(.socketOption(.so_keepalive), value: 1)
            .connect(host: LocalName.resolvable(way.host), port: way.port)
            .flatMapErrorThrowing { throw tunnel == nil ? $0 : ProviderError(reaching: way, $0) }
            .flatMap { channel in
                let opened = channel.eventLoop.makePromise(of: Void.self)
                let result = opened.futureResult.flatMapThrowing {
                    guard channel.isActive else { throw ChannelError.eof }
                    // TLS sends no server name for an address. NIOSSL still compares the address with the certificate.
                    let name = NumericAddress(host) == nil ? host : nil
                    let tls = try NIOSSLClientHandler(context: context, serverHostname: name)
                    try channel.pipeline.syncOperations.addHandler(tls)
                    return try prepare(channel)
                }
                result.whenFailure { _ in channel.close(promise: nil) }
                guard let tunnel else {
                    opened.succeed(())
                    return result
                }
                let service = HostPort(host: LocalName.resolvable(target.host), port: target.port)
                let handler = TunnelHandler(tunnel, to: service, timeout: TimeAmount(timeout), opened: opened)
                do {
                    try channel.pipeline.syncOperations.addHandler(handler)
                } catch {
                    opened.fail(error)
                }
                return result
            }
    }
}

extension ProviderError {
    /// The error of a connection to a proxy.
    fileprivate init(reaching proxy: HostPort, _ error: any Error) {
        self =
            ProviderError.isConnectTimeout(error)
            ? ProviderError(.timedOut, "the proxy \(proxy) does not answer in time")
            : ProviderError(.unreachable, "cannot reach the proxy \(proxy): is it running, and is this its address?")
    }
}
