import HeraldListener
import HeraldMailbox
import HeraldWire
import NIOCore

/// A provider's connection of any protocol, as seen by its event loop.
protocol LoopConnection: DeadlineHolder, SendableMetatype {
    /// A completion was settled; `now` is read once for all that are handled together.
    func settled(_ number: UInt64, _ outcome: CompletionOutcome, now: NIODeadline)
    /// Writes the answers of the settled completions.
    func flushSettled()
    /// The service stops: the connection refuses new requests, answers pending ones, and ends.
    func stop()
}

/// The provider connections of one event loop, with one inbox for completions and one timer wheel.
///
/// Methods run on the loop unless they say otherwise. Generic, so that a completion is a direct call.
final class ProviderLoop<Connection: LoopConnection>: Sendable {
    private final class Member {
        let connection: Connection
        /// Whether it has settled completions whose answers are not written.
        var isTouched = false

        init(_ connection: Connection) { self.connection = connection }
    }

    private struct State {
        let wheel: DeadlineWheel
        var members: [UInt64: Member] = [:]
        var lastNumber: UInt64 = 0
        var whenEmpty: EventLoopPromise<Void>?
        var isStopping = false
    }

    let eventLoop: any EventLoop
    private let inbox: LoopInbox<SettledCompletion>
    private let state: NIOLoopBoundBox<State>

    init(on eventLoop: any EventLoop) {
        self.eventLoop = eventLoop
        let state = NIOLoopBoundBox.makeBoxSendingValue(
            State(wheel: DeadlineWheel(eventLoop: eventLoop)),
            eventLoop: eventLoop
        )
        self.state = state
        inbox = LoopInbox(on: eventLoop) { Self.deliver($0, to: state.value.members) }
    }

    /// Adds a connection and watches its deadlines.
    ///
    /// A connection whose handshake ends after ``stop()`` is stopped, too; its requests would be cut off otherwise.
    ///
    /// - Returns: The connection's number, and the handler of its completions.
    func add(_ connection: Connection) -> (number: UInt64, handler: any CompletionHandler) {
        state.value.lastNumber += 1
        let number = state.value.lastNumber
        state.value.members[number] = Member(connection)
        state.value.wheel.add(connection)
        if state.value.isStopping {
            let state = state
            eventLoop.execute { state.value.members[number]?.connection.stop() }
        }
        return (number, CompletionInbox(inbox: inbox, connection: number))
    }

    /// Whether the service stops.
    var isStopping: Bool { state.value.isStopping }

    /// Removes a connection; later completions for it are dropped.
    func remove(_ number: UInt64) {
        state.value.members[number] = nil
        guard state.value.members.isEmpty else { return }
        state.value.whenEmpty?.succeed()
        state.value.whenEmpty = nil
    }

    /// Calls a closure with every connection; callable from any thread.
    func toEach(_ act: @escaping @Sendable (Connection) -> Void) {
        let state = state
        eventLoop.execute {
            for member in Array(state.value.members.values) { act(member.connection) }
        }
    }

    /// Stops every connection, including later ones; callable from any thread.
    func stop() {
        let state = state
        eventLoop.execute {
            state.value.isStopping = true
            for member in Array(state.value.members.values) { member.connection.stop() }
        }
    }

    /// Waits until no connection is left; callable once, from any thread.
    func empty() async {
        let promise = eventLoop.makePromise(of: Void.self)
        let state = state
        eventLoop.execute {
            if state.value.members.isEmpty { promise.succeed() } else { state.value.whenEmpty = promise }
        }
        // The promise cannot fail.
        try? await promise.futureResult.get()
    }

    private static func deliver(_ completions: [SettledCompletion], to members: [UInt64: Member]) {
        let now = NIODeadline.now()
        var touched: [Member] = []
        var last: (number: UInt64, connection: Connection)?
        for completion in completions {
            if last?.number != completion.connection {
                guard let member = members[completion.connection] else { continue }
                last = (completion.connection, member.connection)
                if !member.isTouched {
                    member.isTouched = true
                    touched.append(member)
                }
            }
            last?.connection.settled(completion.number, completion.outcome, now: now)
        }
        for member in touched {
            member.isTouched = false
            member.connection.flushSettled()
        }
    }
}

/// The HTTP/2 connections of one event loop.
typealias HTTP2Loop = ProviderLoop<ProviderConnection>

/// A completion that a thread has settled.
private struct SettledCompletion: Sendable {
    let connection: UInt64
    let number: UInt64
    let outcome: CompletionOutcome
}

/// The completion handler of one connection; envelopes may keep it longer than the connection lives.
private final class CompletionInbox: CompletionHandler {
    private let inbox: LoopInbox<SettledCompletion>
    private let connection: UInt64

    init(inbox: LoopInbox<SettledCompletion>, connection: UInt64) {
        self.inbox = inbox
        self.connection = connection
    }

    func settle(_ number: UInt64, _ outcome: CompletionOutcome) {
        inbox.add(SettledCompletion(connection: connection, number: number, outcome: outcome))
    }
}
