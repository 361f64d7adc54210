import HeraldIdentity
import HeraldModel
import NIOCore
import NIOPosix
import NIOSSL
import Synchronization

/// Connects to the service, and reads from the connection.
struct DeviceConnector {
    /// Advice for a device whose certificate is refused.
    static let remedy =
        "check that this is the device's own service and its port for devices (device-port), and get another certificate from it "
        + "(`herald agent activate --replace`)"

    let configuration: DeviceConfiguration
    let address: HostPort
    let context: NIOSSLContext
    /// The end of the device's certificate.
    let expires: WallTime

    /// Connects, and reads until the connection ends; each permit allows one more chunk of bytes.
    func read(
        _ attempt: Int,
        into inputs: AsyncStream<ConnectionInput>.Continuation,
        _ permits: AsyncStream<Void>
    ) async {
        do {
            let channel = try await connect()
            let watchdog = ConnectionWatchdog(channel.channel)
            try await channel.executeThenClose { inbound, outbound in
                inputs.yield(.opened(attempt, OpenConnection(outbound: outbound, watchdog: watchdog)))
                var permit = permits.makeAsyncIterator()
                for try await bytes in inbound {
                    watchdog.heard()
                    inputs.yield(.bytes(attempt, bytes))
                    guard await permit.next() != nil else { return }
                }
            }
            inputs.yield(
                .closed(attempt, DeviceSession.End(advice: .retry, reason: "the service closed the connection"))
            )
        } catch {
            inputs.yield(.closed(attempt, end(for: error)))
        }
    }

    private func connect() async throws -> NIOAsyncChannel<ByteBuffer, ByteBuffer> {
        let (context, host) = (context, address.host)
        let name = configuration.serverName ?? configuration.environment.serverName(of: host) ?? host
        let pending = PendingChannels()
        return try await withTaskCancellationHandler {
            try await ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton)
                .connectTimeout(TimeAmount(configuration.connectTimeout))
                .connect(host: LocalName.resolvable(host), port: address.port) { channel in
                    pending.add(channel)
                    return channel.eventLoop.makeCompletedFuture {
                        try limitUnacknowledged(channel, to: configuration.answerTimeout * 2)
                        // Server name indication is for names. An address is verified as the peer's address.
                        let tls = try NIOSSLClientHandler(
                            context: context,
                            serverHostname: NumericAddress(name) == nil ? name : nil
                        )
                        try channel.pipeline.syncOperations.addHandler(tls)
                        return try NIOAsyncChannel(wrappingChannelSynchronously: channel)
                    }
                }
        } onCancel: {
            pending.close()
        }
    }

    /// Limits how long sent bytes may stay unacknowledged by the peer's TCP (TCP_USER_TIMEOUT of tcp(7)).
    ///
    /// The system's own limit is a quarter of an hour, and not every write is followed by a PINGREQ.
    private func limitUnacknowledged(_ channel: any Channel, to time: Duration) throws {
        #if os(Linux)
        let milliseconds = max(1000, min(time.components.seconds, 3600) * 1000)
        try channel.syncOptions?.setOption(ChannelOptions.tcpOption(.init(rawValue: 18)), value: Int(milliseconds))
        #endif
    }

    /// The end of a connection that failed: the reason in words, and whether to try again.
    private func end(for error: any Error) -> DeviceSession.End {
        let fault = TLSFault(error)
        if case .alert(let alert)? = fault, let why = alert.certificateFault {
            // After the handshake an alert is certainly from the service; with TLS 1.3 the service checks the certificate
            // then. During the handshake anybody on the path can send one. "It has expired" is final if this device's clock
            // says so, too.
            let isFinal = alert.isRevocation || (alert.isExpiry && expires < MachineClock().now())
            return DeviceSession.End(
                advice: error is BoringSSLError ? (isFinal ? .dismissed : .giveUp) : .retryLater,
                reason: "\(address) refuses this device's certificate: \(why) (TLS alert \(alert)); \(Self.remedy)"
            )
        }
        let reason =
            switch error {
            case is NIOSSLExtraError: "the certificate of \(address) is not valid for that name"
            case is NIOConnectionError: "cannot reach \(address)"
            default:
                switch fault {
                case .untrusted: "the certificate of \(address) is not signed by an authority that is trusted here"
                case .notTLS: "\(address) does not speak TLS, so it is not a push service: check host and device-port"
                case .ended: "\(address) closed the connection"
                case .some(let fault): "the TLS connection to \(address) failed: \(fault)"
                case nil: "the connection to \(address) ended: \(error)"
                }
            }
        let isUntrusted = error is NIOSSLExtraError || fault == .untrusted
        return DeviceSession.End(advice: .retry, reason: reason, isUntrusted: isUntrusted)
    }
}

/// Connections that are not established yet, one for each address of a host name.
private final class PendingChannels: Sendable {
    private struct State {
        var channels: [any Channel] = []
        var isClosed = false
    }

    private let state = Mutex(State())

    func add(_ channel: any Channel) {
        let isClosed = state.withLock { state in
            state.channels.append(channel)
            return state.isClosed
        }
        if isClosed { channel.close(promise: nil) }
    }

    func close() {
        let channels = state.withLock { state in
            state.isClosed = true
            return state.channels
        }
        for channel in channels { channel.close(promise: nil) }
    }
}
