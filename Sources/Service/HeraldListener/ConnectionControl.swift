package import NIOCore
import NIOSSL
import Synchronization

/// Admits the connections of one listener, and closes those that make way: performs the decisions of an ``AcceptTable``.
package final class ConnectionControl: Sendable {
    private struct State {
        var table: AcceptTable<any Channel>
        var handshakes: [ObjectIdentifier: NIOLoopBound<HandshakeQueue>] = [:]
        var sweep: RepeatedTask?
    }

    let configuration: ListenerConfiguration
    package let refusals: RefusalLog
    private let state: Mutex<State>

    package init(_ configuration: ListenerConfiguration, refusals: RefusalLog) {
        self.configuration = configuration
        self.refusals = refusals
        let limits = AcceptTable<any Channel>.Limits(
            connections: configuration.maximumConnections,
            unknownPerNetwork: configuration.unknownPerNetwork,
            unknownAge: TimeAmount(configuration.unknownAge)
        )
        state = Mutex(State(table: AcceptTable(limits)))
    }

    /// The number of connections, including those in their handshake.
    package var connectionCount: Int { state.withLock { $0.table.count } }

    var connections: [any Channel] { state.withLock { $0.table.connections } }

    /// Admits a new connection, on its event loop, and adds the reader of the PROXY protocol header if it needs one.
    /// - Returns: nil if the connection must be closed; that is counted.
    package func admit(_ channel: any Channel) throws -> AdmittedConnection? {
        let address = channel.remoteAddress.flatMap(ClientAddress.init)
        let isProxied = address.map { address in configuration.proxies.contains { $0.contains(address) } } ?? false
        let network = isProxied ? nil : address?.network ?? ClientNetwork(nil)
        let now = channel.eventLoop.now
        guard let accepted = state.withLock({ $0.table.accept(channel, from: network, at: now) }) else {
            refusals.note(.limit, channel)
            return nil
        }
        let number = accepted.number
        channel.closeFuture.whenComplete { _ in self.state.withLock { $0.table.closed(number) } }
        if let eviction = accepted.eviction { evict(eviction) }
        if isProxied {
            let reader = ProxyHeaderReader(timeout: TimeAmount(configuration.proxyTimeout), refusals: refusals) {
                client in
                // The load balancer's own connections count as its network's.
                guard let network = (client ?? address)?.network else { return }
                let eviction = self.state.withLock { $0.table.identify(number, as: network) }
                if let eviction { self.evict(eviction) }
            }
            try channel.pipeline.syncOperations.addHandler(reader)
        }
        return AdmittedConnection(number: number, control: self)
    }

    /// The queue of handshakes of an event loop; on that loop.
    func handshakes(on eventLoop: any EventLoop) -> HandshakeQueue {
        let key = ObjectIdentifier(eventLoop)
        if let known = state.withLock({ $0.handshakes[key] }) { return known.value }
        let made = NIOLoopBound(HandshakeQueue(eventLoop), eventLoop: eventLoop)
        state.withLock { $0.handshakes[key] = made }
        return made.value
    }

    func handshakeBegan(_ number: UInt64) {
        state.withLock { $0.table.handshakeBegan(number) }
    }

    func becameKnown(_ number: UInt64) {
        state.withLock { $0.table.becameKnown(number) }
    }

    /// Begins to close connections that stay unknown for too long.
    func startSweep(on eventLoop: any EventLoop) {
        let sweep = eventLoop.scheduleRepeatedTask(initialDelay: .seconds(1), delay: .seconds(1)) { _ in
            self.sweep(eventLoop)
        }
        state.withLock { $0.sweep = sweep }
    }

    func stopSweep() {
        state.withLock { $0.sweep }?.cancel()
    }

    private func sweep(_ eventLoop: any EventLoop) {
        for (number, channel) in state.withLock({ $0.table.overdue(at: eventLoop.now) }) {
            channel.eventLoop.execute { self.giveNotice(to: number, channel) }
        }
    }

    /// Tells a connection that it is overdue, and closes it after the notice unless it is known by then; on its event loop.
    private func giveNotice(to number: UInt64, _ channel: any Channel) {
        guard state.withLock({ $0.table.giveNotice(to: number) }) else { return }
        refusals.note(.unknown, channel)
        channel.pipeline.syncOperations.fireUserInboundEventTriggered(ConnectionOverdue())
        channel.eventLoop.scheduleTask(in: ConnectionOverdue.notice) {
            if self.state.withLock({ $0.table.isUnderNotice(number) }) { channel.closeTransport() }
        }
    }

    private func evict(_ eviction: AcceptTable<any Channel>.Eviction) {
        let (number, channel, reason) = (eviction.number, eviction.connection, eviction.reason)
        channel.eventLoop.execute {
            guard self.state.withLock({ $0.table.mustClose(number) }) else { return }
            if let reason { self.refusals.note(reason, channel) }
            channel.closeTransport()
        }
    }
}

/// An event for the handlers of a connection that stayed unknown for too long: it ends within the notice.
///
/// A client that is authenticated within the notice stays, unless its handler has ended the connection.
package struct ConnectionOverdue: Sendable {
    static let notice = TimeAmount.seconds(2)
}

/// A connection that the listener has admitted, and whose client is not authenticated yet.
package struct AdmittedConnection: Sendable {
    fileprivate let number: UInt64
    fileprivate let control: ConnectionControl

    /// The client is authenticated; callable from any thread.
    package func becameKnown() {
        control.becameKnown(number)
    }

    /// Reader of the server name, which waits for the connection's turn among the handshakes.
    ///
    /// Only for the event loop.
    package func makeNameReader(on eventLoop: any EventLoop) -> ServerNameReader {
        let (number, control) = (number, control)
        let words = control.configuration.wordsForPlain
        return ServerNameReader(words: words, turns: control.handshakes(on: eventLoop)) {
            control.handshakeBegan(number)
        }
    }
}

extension Channel {
    /// Closes the socket at once, without a TLS shutdown; on the event loop.
    fileprivate func closeTransport() {
        if let tls = try? pipeline.syncOperations.context(handlerType: NIOSSLServerHandler.self) {
            tls.close(promise: nil)
        } else {
            close(promise: nil)
        }
    }
}
