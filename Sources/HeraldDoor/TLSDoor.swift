package import Logging
package import NIOCore
import NIOPosix
package import NIOSSL
import NIOTLS
import Synchronization

/// What is known of a peer once the TLS handshake is over.
package struct HandshakePeer: Sendable {
    /// The certificate of this connection, DER; on a resumed session the one that the session was made with.
    package let certificate: [UInt8]?
    /// The name that the client asked for (server name indication).
    package let serverName: String?
    /// What ALPN settled on.
    package let negotiatedProtocol: String?
}

/// A listening socket with TLS, and the limits that hold before any protocol is spoken.
///
/// 1. Listens, and closes at once what comes past the connection limit.
/// 2. Reads the server name, shakes hands, and gives up on peers that take too long.
/// 3. Hands the channel with its ``HandshakePeer`` to the initializer, which puts the protocol's one handler behind TLS.
/// 4. Takes a new TLS context at any time, for the connections that come after.
package final class TLSDoor: Sendable {
    /// Puts the protocol's handler at the end of the pipeline.
    ///
    /// Runs on the channel's event loop; throwing closes. A ``DoorRefusal`` or a `PeerRefusal` is told the operator.
    package typealias Initializer = @Sendable (any Channel, HandshakePeer) throws -> Void

    private struct State {
        var context: NIOSSLContext
        var listener: (any Channel)?
        var connections: [ObjectIdentifier: any Channel] = [:]
    }

    private let configuration: DoorConfiguration
    private let logger: Logger
    private let refusals: RefusalDesk
    private let initializer: Initializer
    private let state: Mutex<State>

    package init(
        configuration: DoorConfiguration,
        context: NIOSSLContext,
        logger: Logger,
        diagnosis: @escaping RefusalDesk.Diagnosis,
        initializer: @escaping Initializer
    ) {
        self.configuration = configuration
        self.logger = logger
        refusals = RefusalDesk(door: configuration.name, logger: logger, diagnosis: diagnosis)
        self.initializer = initializer
        state = Mutex(State(context: context))
    }

    /// Starts to listen.
    /// - Returns: The port, which is the configured one unless that is 0.
    /// - Throws: ``DoorError`` if the address is occupied, not this machine's, or not allowed.
    package func open(on group: any EventLoopGroup) async throws -> Int {
        let allocator = configuration.expectsIdleConnections ? SparseBuffers.allocator : ByteBufferAllocator()
        let recvAllocator = AdaptiveRecvByteBufferAllocator(
            minimum: min(512, configuration.readBytes),
            initial: min(1024, configuration.readBytes),
            maximum: configuration.readBytes
        )
        let isSparing = configuration.expectsIdleConnections
        let bootstrap = ServerBootstrap(group: group)
            .serverChannelOption(.backlog, value: 4096)
            .serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
            .childChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    // Not as options of the bootstrap, which makes futures of them, for every connection.
                    let options = channel.syncOptions
                    try options?.setOption(.allocator, value: allocator)
                    try options?.setOption(.recvAllocator, value: recvAllocator)
                    // A channel keeps as many buffers to its end as it may read into at once.
                    if isSparing { try options?.setOption(.maxMessagesPerRead, value: 1) }
                    try self.admit(channel)
                }
            }
        do {
            let listener = try await bootstrap.bind(host: configuration.host, port: configuration.port).get()
            state.withLock { $0.listener = listener }
            return listener.localAddress?.port ?? configuration.port
        } catch {
            throw DoorError(cannotOpen: configuration, cause: error)
        }
    }

    /// The context for the handshakes from now on.
    ///
    /// Sessions of the old one do not resume.
    package func replaceContext(_ context: NIOSSLContext) {
        state.withLock { $0.context = context }
    }

    /// How many connections there are, those in their handshake included.
    package var connectionCount: Int {
        state.withLock { $0.connections.count }
    }

    /// Takes no new connections; those that are there stay.
    package func stopListening() async {
        let listener = state.withLock { state in
            defer { state.listener = nil }
            return state.listener
        }
        // Closed already is as good.
        try? await listener?.close()
    }

    /// Closes what is left, without ceremony.
    package func closeConnections() async {
        let connections = state.withLock { Array($0.connections.values) }
        for connection in connections { connection.close(promise: nil) }
        for connection in connections { try? await connection.closeFuture.get() }
    }

    private func admit(_ channel: any Channel) throws {
        let key = ObjectIdentifier(channel)
        let context = state.withLock { state -> NIOSSLContext? in
            guard state.connections.count < configuration.maximumConnections else { return nil }
            state.connections[key] = channel
            return state.context
        }
        guard let context else {
            refusals.noteLimit(channel)
            throw DoorError(code: .tooManyConnections, message: "\(configuration.name): connection limit reached")
        }
        channel.closeFuture.whenComplete { _ in self.state.withLock { $0.connections[key] = nil } }
        let nameReader = ServerNameReader()
        let tls = NIOSSLServerHandler(context: context)
        let greeter = HandshakeHandler(
            tls: tls,
            nameReader: nameReader,
            patience: TimeAmount(configuration.handshakeTimeout),
            refusals: refusals,
            logger: logger,
            initializer: initializer
        )
        let pipeline = channel.pipeline.syncOperations
        try pipeline.addHandler(nameReader)
        try pipeline.addHandler(tls)
        try pipeline.addHandler(greeter)
    }
}
