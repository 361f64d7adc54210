import HeraldTrust
import NIOCore
import NIOPosix
import NIOSSL
import Synchronization

extension DeviceClient {
    /// Connects, and reads until the connection ends.
    /// - Parameters:
    ///   - attempt: The number of the attempt.
    ///   - inputs: Where to say what happens.
    ///   - permits: One for each piece that has been worked off, so that no more than one waits.
    func read(_ attempt: Int, into inputs: AsyncStream<LineInput>.Continuation, _ permits: AsyncStream<Void>) async {
        do {
            let channel = try await connect()
            let watch = LineWatch(channel.channel)
            try await channel.executeThenClose { inbound, outbound in
                inputs.yield(.opened(attempt, OpenLine(outbound: outbound, watch: watch)))
                var permit = permits.makeAsyncIterator()
                for try await bytes in inbound {
                    watch.heard()
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
        let (context, host) = (context, configuration.host)
        let wanted = configuration.serverName ?? host
        let pending = PendingChannels()
        return try await withTaskCancellationHandler {
            try await ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton)
                .connectTimeout(TimeAmount(configuration.connectTimeout))
                .connect(host: host, port: configuration.port) { channel in
                    pending.add(channel)
                    return channel.eventLoop.makeCompletedFuture {
                        try DeviceClient.limitUnacknowledged(channel, to: self.configuration.answerTimeout * 2)
                        // Server name indication is for names; an address is verified as the peer's address.
                        let name = DeviceClient.isAddress(wanted) ? nil : wanted
                        let tls = try NIOSSLClientHandler(context: context, serverHostname: name)
                        try channel.pipeline.syncOperations.addHandler(tls)
                        return try NIOAsyncChannel(wrappingChannelSynchronously: channel)
                    }
                }
        } onCancel: {
            pending.close()
        }
    }

    /// How long what is sent may stay unacknowledged by the peer's TCP before the system gives the connection up
    /// (TCP_USER_TIMEOUT of tcp(7)), which would else take a quarter of an hour: for the times in which nobody waits for
    /// the answer to a test.
    private static func limitUnacknowledged(_ channel: any Channel, to time: Duration) throws {
        #if os(Linux)
        let milliseconds = max(1000, min(time.components.seconds, 3600) * 1000)
        try channel.syncOptions?.setOption(ChannelOptions.tcpOption(.init(rawValue: 18)), value: Int(milliseconds))
        #endif
    }

    private static func isAddress(_ host: String) -> Bool {
        (try? SocketAddress(ipAddress: host, port: 0)) != nil
    }

    /// Why a connection could not be made or held, for people, and whether another would fare better.
    func end(for error: any Error) -> DeviceSession.End {
        let place = "\(configuration.host):\(configuration.port)"
        let fault = TLSFault(error)
        if case .alert(let alert)? = fault, let why = alert.certificateFault {
            // Once the handshake is over (and with TLS 1.3 it is when the service looks at the certificate) an alert is
            // known to be the service's own. One within the handshake can be anybody's who sits on the way.
            return DeviceSession.End(
                advice: error is BoringSSLError ? .giveUp : .retryLater,
                reason:
                    "\(place) refuses this device's certificate: \(why) (TLS alert \(alert)); \(DeviceClient.remedy)"
            )
        }
        let reason =
            switch error {
            case is NIOSSLExtraError: "the certificate of \(place) is not valid for that name"
            case is NIOConnectionError: "cannot reach \(place)"
            default:
                switch fault {
                case .untrusted: "the certificate of \(place) is not signed by an authority that is trusted here"
                case .notTLS: "\(place) speaks no TLS, so it is no push service: check host and port"
                case .ended: "\(place) closed the connection"
                case .some(let fault): "the TLS connection to \(place) failed: \(fault)"
                case nil: "the connection to \(place) ended: \(error)"
                }
            }
        return DeviceSession.End(advice: .retry, reason: reason)
    }

    /// What whoever holds a device can do when its certificate is not taken.
    static let remedy =
        "check that this is the device's own service, and get another certificate from it (`herald agent activate`)"
}

/// Connections that are being made: one for each address of a name.
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
