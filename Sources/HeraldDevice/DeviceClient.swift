import HeraldModel
import HeraldWire
import NIOCore
import NIOPosix
import NIOSSL

/// A device's connection to the service: MQTT 5 over mutual TLS, held for as long as ``run(_:)`` runs.
///
/// 1. Connects, registers its apps, and reports their device tokens.
/// 2. Reports each notification, and acknowledges it when the handler has returned.
/// 3. Tests a silent connection, and connects again after one that ended: soon at first, then less and less often, and
///    never at the same moment as every other device.
public final class DeviceClient: Sendable {
    private let configuration: DeviceConfiguration
    private let context: NIOSSLContext

    /// Makes a client; connects when it runs.
    /// - Parameter configuration: Where to, as whom, for which apps.
    /// - Throws: ``DeviceError/Code/badAuthority``, ``DeviceError/Code/badIdentity``.
    public init(_ configuration: DeviceConfiguration) throws {
        self.configuration = configuration
        var tls = TLSConfiguration.makeClientConfiguration()
        tls.minimumTLSVersion = .tlsv12
        tls.certificateChain = configuration.credential.chain.map { .certificate($0) }
        tls.privateKey = .privateKey(configuration.credential.key)
        if let pem = configuration.authorities {
            guard let authorities = try? NIOSSLCertificate.fromPEMBytes(pem), !authorities.isEmpty else {
                throw DeviceError(.badAuthority, "the authority's file holds no certificate in PEM")
            }
            tls.trustRoots = .certificates(authorities)
        }
        do {
            context = try NIOSSLContext(configuration: tls)
        } catch {
            throw DeviceError(.badIdentity, "certificate and private key do not belong together")
        }
    }

    /// Stays connected until the task is cancelled, or the service refuses the device for good.
    /// - Parameter handle: Called with one event at a time. What it throws ends the run.
    /// - Throws: ``DeviceError/Code/refused``, `CancellationError`, or what `handle` throws.
    public func run(_ handle: (DeviceEvent) async throws -> Void) async throws {
        var memory = Memory()
        while true {
            try Task.checkCancellation()
            let end: DeviceSession.End
            do {
                end = try await connection(&memory, handle)
            } catch let error as HandlerFailure {
                throw error.cause
            }
            guard end.advice != .giveUp else { throw DeviceError(.refused, end.reason) }
            if end.advice == .retryLater { memory.backOff.yield() }
            let pause = memory.backOff.pause(random: .random(in: 0...1))
            try await handle(.disconnected(reason: end.reason, nextAttempt: pause))
            try await Task.sleep(for: pause)
        }
    }

    /// What outlives a connection.
    private struct Memory {
        var backOff = BackOff()
        var tokens: [Topic: DeviceToken] = [:]
    }

    /// Marks an error as the handler's, so that it is not taken for one of the network's.
    private struct HandlerFailure: Error {
        let cause: any Error
    }

    /// One connection, from its first byte to its last.
    private func connection(
        _ memory: inout Memory,
        _ handle: (DeviceEvent) async throws -> Void
    ) async throws -> DeviceSession.End {
        do {
            let channel = try await connect()
            return try await channel.executeThenClose { inbound, outbound in
                try await converse(
                    Line(channel: channel.channel, inbound: inbound, outbound: outbound),
                    &memory,
                    handle
                )
            }
        } catch let error as HandlerFailure {
            throw error
        } catch {
            if Task.isCancelled || error is CancellationError { throw HandlerFailure(cause: CancellationError()) }
            return DeviceSession.End(advice: .retry, reason: words(for: error))
        }
    }

    /// Both directions of a connection, and the connection itself.
    private struct Line {
        let channel: any Channel
        let inbound: NIOAsyncChannelInboundStream<ByteBuffer>
        let outbound: NIOAsyncChannelOutboundWriter<ByteBuffer>
    }

    private func converse(
        _ line: Line,
        _ memory: inout Memory,
        _ handle: (DeviceEvent) async throws -> Void
    ) async throws -> DeviceSession.End {
        let pulse = Pulse()
        let timer = pulse.closeLater(line.channel, after: configuration.connectTimeout)
        return try await withThrowingTaskGroup(of: Void.self) { group in
            defer {
                timer.cancel()
                group.cancelAll()
            }
            var session = DeviceSession(configuration, tokens: memory.tokens)
            defer { memory.tokens = session.tokens }
            var decoder = MQTTPacketDecoder(version: .v5, maximumPacketSize: configuration.maximumPacketBytes)
            try await DeviceClient.send(session.connect, line.outbound)
            for try await bytes in line.inbound {
                pulse.beat()
                decoder.append(bytes)
                while let orders = DeviceClient.next(&decoder, &session) {
                    for order in orders {
                        switch order {
                        case .send(let packet):
                            try await DeviceClient.send(packet, line.outbound)
                        case .report(let event):
                            do { try await handle(event) } catch { throw HandlerFailure(cause: error) }
                        case .live(let keepAlive):
                            timer.cancel()
                            memory.backOff.reset()
                            group.addTask { await pulse.watch(line.channel, line.outbound, keepAlive: keepAlive) }
                        case .end(let end):
                            return end
                        }
                    }
                }
            }
            return DeviceSession.End(advice: .retry, reason: pulse.reason ?? "the service closed the connection")
        }
    }

    private func connect() async throws -> NIOAsyncChannel<ByteBuffer, ByteBuffer> {
        let (context, host) = (context, configuration.host)
        let wanted = configuration.serverName ?? host
        return try await ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .connectTimeout(TimeAmount(configuration.connectTimeout))
            .connect(host: host, port: configuration.port) { channel in
                channel.eventLoop.makeCompletedFuture {
                    // Server name indication is for names; an address is verified as the peer's address.
                    let name = DeviceClient.isAddress(wanted) ? nil : wanted
                    let tls = try NIOSSLClientHandler(context: context, serverHostname: name)
                    try channel.pipeline.syncOperations.addHandler(tls)
                    return try NIOAsyncChannel(wrappingChannelSynchronously: channel)
                }
            }
    }

    private static func isAddress(_ host: String) -> Bool {
        (try? SocketAddress(ipAddress: host, port: 0)) != nil
    }

    private static func next(
        _ decoder: inout MQTTPacketDecoder,
        _ session: inout DeviceSession
    ) -> [DeviceSession.Order]? {
        do {
            return try decoder.next().map { session.received($0) }
        } catch {
            return session.received(error)
        }
    }

    private static func send(
        _ packet: MQTTPacket,
        _ outbound: NIOAsyncChannelOutboundWriter<ByteBuffer>
    ) async throws {
        var bytes = ByteBuffer()
        try MQTTPacketEncoder.encode(packet, version: .v5, into: &bytes)
        try await outbound.write(bytes)
    }

    private func words(for error: any Error) -> String {
        let place = "\(configuration.host):\(configuration.port)"
        return switch error {
        case is NIOSSLExtraError: "the certificate of \(place) is not valid for that name"
        case let error as NIOSSLError where "\(error)".contains("CERTIFICATE_VERIFY_FAILED"):
            "the certificate of \(place) is not signed by an authority that is trusted here"
        case let error as NIOSSLError: "the TLS handshake with \(place) failed: \(error)"
        case is NIOConnectionError: "cannot reach \(place)"
        default: "the connection to \(place) ended: \(error)"
        }
    }
}
