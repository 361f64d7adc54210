package import NIOCore
import NIOPosix
package import NIOSSL
import Synchronization

/// The facts of a peer after the TLS handshake.
package struct HandshakePeer: Sendable {
    /// The peer's certificate, DER; on a resumed session the certificate of the original handshake.
    package let certificate: [UInt8]?
    /// The server name indication of the client.
    package let serverName: String?
    /// The protocol that ALPN selected.
    package let negotiatedProtocol: String?
    /// Nil only in tests.
    package var connection: AdmittedConnection?
}

/// A listening socket with TLS, limits of connections and a handshake timeout.
///
/// 1. Admits connections, and closes those that make way (``ConnectionControl``).
/// 2. Reads the server name, performs the handshake, and closes peers that take too long.
/// 3. Passes the channel and its ``HandshakePeer`` to the initializer, which adds the protocol's handler behind TLS.
/// 4. Accepts a new TLS context at any time, for later connections.
package final class TLSListener: Sendable {
    /// Adds the protocol's handler to the end of the pipeline.
    ///
    /// Runs on the channel's event loop. Throwing closes the connection; a ``RefusedConnection`` or `PeerRefusal` is
    /// logged and counted.
    package typealias Initializer = @Sendable (any Channel, HandshakePeer) throws -> Void

    private struct State {
        var context: NIOSSLContext
        var listener: (any Channel)?
    }

    private let configuration: ListenerConfiguration
    private let control: ConnectionControl
    private let initializer: Initializer
    private let state: Mutex<State>

    package init(
        configuration: ListenerConfiguration,
        context: NIOSSLContext,
        refusals: RefusalLog,
        initializer: @escaping Initializer
    ) {
        self.configuration = configuration
        control = ConnectionControl(configuration, refusals: refusals)
        self.initializer = initializer
        state = Mutex(State(context: context))
    }

    /// Starts to listen.
    /// - Returns: The port, which is the configured one unless that is 0.
    /// - Throws: ``ListenerError`` if the address is in use, belongs to another machine, or is not permitted.
    package func open(on group: any EventLoopGroup) async throws -> Int {
        let allocator = configuration.expectsIdleConnections ? SparseBuffers.allocator : ByteBufferAllocator()
        let recvAllocator = AdaptiveRecvByteBufferAllocator(
            minimum: min(512, configuration.readBytes),
            initial: min(1024, configuration.readBytes),
            maximum: configuration.readBytes
        )
        let isSparing = configuration.expectsIdleConnections
        let unsentBytes = configuration.unsentBytes
        let descriptors = configuration.maximumDescriptors
        let bootstrap = ServerBootstrap(group: group)
            .serverChannelOption(.backlog, value: 4096)
            .serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
            .serverChannelInitializer { listener in
                listener.eventLoop.makeCompletedFuture {
                    try listener.pipeline.syncOperations.addHandler(AcceptPause(limit: descriptors))
                }
            }
            .childChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    // The bootstrap would make a future for each option and connection.
                    let options = channel.syncOptions
                    try options?.setOption(.allocator, value: allocator)
                    try options?.setOption(.recvAllocator, value: recvAllocator)
                    // A channel keeps one buffer per message that it may read at once, for its whole life.
                    if isSparing { try options?.setOption(.maxMessagesPerRead, value: 1) }
                    if let unsentBytes {
                        // TCP_NOTSENT_LOWAT, which Glibc's module lacks.
                        let option = ChannelOptions.tcpOption(.init(rawValue: 25))
                        try options?.setOption(option, value: ChannelOptions.Types.SocketOption.Value(unsentBytes))
                    }
                    try self.admit(channel)
                }
            }
        do {
            let listener = try await bootstrap.bind(host: configuration.host, port: configuration.port).get()
            state.withLock { $0.listener = listener }
            control.startSweep(on: listener.eventLoop)
            return listener.localAddress?.port ?? configuration.port
        } catch {
            throw ListenerError(cannotOpen: configuration, cause: error)
        }
    }

    /// Sets the TLS context of later handshakes; sessions of the old context do not resume.
    package func replaceContext(_ context: NIOSSLContext) {
        state.withLock { $0.context = context }
    }

    /// The number of connections, including those in their handshake.
    package var connectionCount: Int { control.connectionCount }

    /// Stops accepting connections; open ones stay.
    package func stopListening() async {
        let listener = state.withLock { state in
            defer { state.listener = nil }
            return state.listener
        }
        control.stopSweep()
        // An error only says that it is closed already.
        try? await listener?.close()
    }

    /// Closes all open connections at once.
    package func closeConnections() async {
        let connections = control.connections
        for connection in connections { connection.close(promise: nil) }
        for connection in connections { try? await connection.closeFuture.get() }
    }

    private func admit(_ channel: any Channel) throws {
        guard let connection = try control.admit(channel) else {
            throw ListenerError(code: .tooManyConnections, message: "\(configuration.name): connection limit reached")
        }
        let nameReader = connection.makeNameReader(on: channel.eventLoop)
        let tls = NIOSSLServerHandler(context: state.withLock { $0.context })
        let handshake = HandshakeHandler(
            connection: connection,
            tls: tls,
            nameReader: nameReader,
            timeout: TimeAmount(configuration.handshakeTimeout),
            words: configuration.isClientFirst ? configuration.wordsForHTTP1 : nil,
            refusals: control.refusals,
            initializer: initializer
        )
        let pipeline = channel.pipeline.syncOperations
        try pipeline.addHandler(nameReader)
        try pipeline.addHandler(tls)
        try pipeline.addHandler(handshake)
    }
}
