import HeraldDoor
import HeraldMailbox
import NIOCore

/// A provider's connection, whatever it speaks, as its event loop needs it.
protocol LoopConnection: DeadlineHolder, SendableMetatype {
    /// A receipt was settled.
    func settled(_ number: UInt64, _ outcome: ReceiptOutcome)
    /// Notes that receipts are being settled.
    ///
    /// - Returns: Whether this is the first since the last ``flushTouched()``.
    func noteTouched() -> Bool
    /// Does what the receipts that were settled call for.
    func flushTouched()
    /// The service stops: no new requests, answers to those in hand, and the end.
    func stop()
}

/// The provider connections of one event loop, and what they share: one inbox for receipts, one wheel for deadlines.
///
/// Usable from any thread where it says so; everything else happens on the loop. Generic, so that what is done for each
/// receipt is a direct call.
final class ProviderLoop<Connection: LoopConnection>: Sendable {
    private struct State {
        let wheel: DeadlineWheel
        var connections: [UInt64: Connection] = [:]
        var lastNumber: UInt64 = 0
        var whenEmpty: EventLoopPromise<Void>?
        var isStopping = false
    }

    private let eventLoop: any EventLoop
    private let inbox: LoopInbox<SettledReceipt>
    private let state: NIOLoopBoundBox<State>

    init(on eventLoop: any EventLoop) {
        self.eventLoop = eventLoop
        let state = NIOLoopBoundBox.makeBoxSendingValue(
            State(wheel: DeadlineWheel(eventLoop: eventLoop)),
            eventLoop: eventLoop
        )
        self.state = state
        inbox = LoopInbox(on: eventLoop) { Self.deliver($0, to: state.value.connections) }
    }

    /// Takes a connection in, and watches its deadlines.
    ///
    /// One whose handshake ends after ``stop()`` is stopped in its turn: what it asks for would be cut off otherwise.
    ///
    /// On the loop.
    ///
    /// - Returns: The connection's number, and the desk where its receipts are settled.
    func add(_ connection: Connection) -> (number: UInt64, desk: any ReceiptDesk) {
        state.value.lastNumber += 1
        let number = state.value.lastNumber
        state.value.connections[number] = connection
        state.value.wheel.add(connection)
        if state.value.isStopping {
            let state = state
            eventLoop.execute { state.value.connections[number]?.stop() }
        }
        return (number, ReceiptTray(inbox: inbox, connection: number))
    }

    /// Forgets a connection; what is settled for it from now on goes nowhere.
    ///
    /// On the loop.
    func remove(_ number: UInt64) {
        state.value.connections[number] = nil
        guard state.value.connections.isEmpty else { return }
        state.value.whenEmpty?.succeed()
        state.value.whenEmpty = nil
    }

    /// Does something with every connection.
    ///
    /// From any thread.
    func toEach(_ act: @escaping @Sendable (Connection) -> Void) {
        let state = state
        eventLoop.execute {
            for connection in Array(state.value.connections.values) { act(connection) }
        }
    }

    /// Stops every connection, those that are still to come too.
    ///
    /// From any thread.
    func stop() {
        let state = state
        eventLoop.execute {
            state.value.isStopping = true
            for connection in Array(state.value.connections.values) { connection.stop() }
        }
    }

    /// Waits until there is no connection any more.
    ///
    /// From any thread; once.
    func empty() async {
        let promise = eventLoop.makePromise(of: Void.self)
        let state = state
        eventLoop.execute {
            if state.value.connections.isEmpty { promise.succeed() } else { state.value.whenEmpty = promise }
        }
        // The promise has no way to fail.
        try? await promise.futureResult.get()
    }

    private static func deliver(_ receipts: [SettledReceipt], to connections: [UInt64: Connection]) {
        var touched: [Connection] = []
        var last: (number: UInt64, connection: Connection)?
        for receipt in receipts {
            if last?.number != receipt.connection {
                guard let connection = connections[receipt.connection] else { continue }
                last = (receipt.connection, connection)
                if connection.noteTouched() { touched.append(connection) }
            }
            last?.connection.settled(receipt.number, receipt.outcome)
        }
        for connection in touched { connection.flushTouched() }
    }
}

/// The HTTP/2 connections of one event loop.
typealias HTTP2Loop = ProviderLoop<ProviderConnection>

/// A receipt that was settled on some thread.
private struct SettledReceipt: Sendable {
    let connection: UInt64
    let number: UInt64
    let outcome: ReceiptOutcome
}

/// Where the receipts of one connection are settled.
///
/// It outlives the connection as long as letters name it.
private final class ReceiptTray: ReceiptDesk {
    private let inbox: LoopInbox<SettledReceipt>
    private let connection: UInt64

    init(inbox: LoopInbox<SettledReceipt>, connection: UInt64) {
        self.inbox = inbox
        self.connection = connection
    }

    func settle(_ number: UInt64, _ outcome: ReceiptOutcome) {
        inbox.leave(SettledReceipt(connection: connection, number: number, outcome: outcome))
    }
}
