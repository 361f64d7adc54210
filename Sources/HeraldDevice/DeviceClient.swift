import HeraldModel
import HeraldWire
public import Logging
import NIOCore
import NIOPosix
import NIOSSL
import Synchronization

/// A device: holds one connection to its service, registers its apps, and hands on what arrives.
///
/// The service's certificate is always verified, name and chain. After a lost connection it connects again, for as long
/// as ``run(_:)`` runs, with a growing, jittered wait. One client is one device: run it once at a time.
public final class DeviceClient: Sendable {
    private let configuration: DeviceConfiguration
    private let logger: Logger
    private let tokens = Mutex<[Topic: DeviceToken]>([:])

    /// Makes a device; nothing is read or connected before ``run(_:)``.
    public init(_ configuration: DeviceConfiguration, logger: Logger) {
        self.configuration = configuration
        self.logger = logger
    }

    /// Holds the connection until the task is cancelled.
    ///
    /// - Parameter handle: Told of every event, one after the other. A notification is acknowledged when it returns, so
    ///   that what it did not finish is sent again.
    /// - Throws: ``DeviceError`` with ``DeviceError/Code/badIdentity`` if a file cannot be read; `CancellationError` never.
    public func run(_ handle: @escaping @Sendable (DeviceEvent) async -> Void) async throws {
        let context = try makeContext()
        var failures = 0
        var generator = SystemRandomNumberGenerator()
        while !Task.isCancelled {
            var reason = "the connection was closed"
            do {
                try await hold(context, handle) { failures = 0 }
            } catch {
                reason = "\(error)"
            }
            guard !Task.isCancelled else { return }
            failures += 1
            let wait = configuration.backoff.wait(afterFailures: failures, using: &generator)
            logger.debug("not connected", metadata: ["reason": "\(reason)", "wait": "\(wait)"])
            await handle(.disconnected(reason: reason, nextAttemptIn: wait))
            try? await Task.sleep(for: wait)
        }
    }

    private func makeContext() throws -> NIOSSLContext {
        do {
            var tls = TLSConfiguration.makeClientConfiguration()
            tls.minimumTLSVersion = .tlsv12
            let chain = try NIOSSLCertificate.fromPEMFile(configuration.identityFile)
            tls.certificateChain = chain.map { .certificate($0) }
            tls.privateKey = .privateKey(try NIOSSLPrivateKey(file: configuration.identityFile, format: .pem))
            tls.trustRoots = .certificates(try NIOSSLCertificate.fromPEMFile(configuration.authorityFile))
            return try NIOSSLContext(configuration: tls)
        } catch {
            let files = "\(configuration.identityFile) (certificate and key) and \(configuration.authorityFile)"
            throw DeviceError(.badIdentity, "cannot read the identity from \(files): \(error)")
        }
    }

    private func hold(
        _ context: NIOSSLContext,
        _ handle: @escaping @Sendable (DeviceEvent) async -> Void,
        connected: () -> Void
    ) async throws {
        let host = configuration.host
        // A certificate names an address as such, not as a server name (RFC 6066 §3).
        let serverName = (try? SocketAddress(ipAddress: host, port: 0)) == nil ? host : nil
        let channel = try await ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .connectTimeout(TimeAmount(configuration.connectTimeout))
            .connect(host: host, port: configuration.port) { channel in
                channel.eventLoop.makeCompletedFuture {
                    let tls = try NIOSSLClientHandler(context: context, serverHostname: serverName)
                    try channel.pipeline.syncOperations.addHandlers([tls, DeviceCodec()])
                    return try NIOAsyncChannel<MQTTPacket, MQTTPacket>(wrappingChannelSynchronously: channel)
                }
            }
        let channelOfPings = channel.channel
        try await channel.executeThenClose { inbound, outbound in
            var session = DeviceSession(
                topics: configuration.topics,
                keepAlive: configuration.keepAlive,
                tokens: tokens.withLock { $0 }
            )
            let silence = SilenceWatch(channel: channelOfPings, limit: configuration.connectTimeout)
            defer { silence.end() }
            try await outbound.write(session.connect())
            for try await packet in inbound {
                silence.heard()
                for action in try session.received(packet) {
                    if case .connected(_, let keepAlive) = action {
                        connected()
                        silence.keepAlive(keepAlive)
                    }
                    try await perform(action, outbound, handle)
                }
                tokens.withLock { $0 = session.tokens }
            }
        }
    }

    private func perform(
        _ action: DeviceSession.Action,
        _ outbound: NIOAsyncChannelOutboundWriter<MQTTPacket>,
        _ handle: @Sendable (DeviceEvent) async -> Void
    ) async throws {
        switch action {
        case .send(let packet): try await outbound.write(packet)
        case .connected(let id, _): await handle(.connected(id))
        case .token(let token, let topic): await handle(.token(token, topic: topic))
        case .refused(let topic, let reason): await handle(.refused(topic: topic, reason: reason))
        case .notification(let notification, let answer):
            await handle(.notification(notification))
            if let answer { try await outbound.write(answer) }
        }
    }
}
