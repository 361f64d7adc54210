import Foundation
import HeraldCluster
import HeraldNATS
import Logging
import NIOPosix
import Synchronization

/// A connection to a cluster's NATS servers, and its present state in words.
final class EngineLink: Sendable {
    let connection: NATSConnection
    var jetStream: JetStream { JetStream(connection) }
    private let state: State
    private let events: AsyncStream<NATSConnection.Event>

    /// The last failure; shared with the connection's callback.
    private final class State: Sendable {
        let lastError = Mutex<NATSError?>(nil)
    }

    /// The time for a first connection.
    static let firstConnection = Duration.seconds(15)

    /// Begins to connect.
    /// - Throws: ``CommandError`` for a setting that cannot be used.
    init(_ configuration: ClusterConfiguration, logger: Logger) throws {
        let state = State()
        let (events, event) = AsyncStream.makeStream(
            of: NATSConnection.Event.self,
            bufferingPolicy: .bufferingNewest(16)
        )
        do {
            connection = try NATSConnection(
                configuration.connection(),
                on: MultiThreadedEventLoopGroup.singleton.next(),
                logger: logger
            ) { change in
                state.lastError.withLock {
                    switch change {
                    case .connected: $0 = nil
                    case .disconnected(let error): $0 = error
                    case .lameDuck: break
                    }
                }
                event.yield(change)
            }
        } catch let error as NATSError {
            throw CommandError(.configuration, "the setting cluster: \(error.reason)")
        }
        self.state = state
        self.events = events
        connection.start()
    }

    /// Waits for a server that accepts this node.
    /// - Throws: ``CommandError/Code/unreachable`` with the last failure, after ``firstConnection``.
    func waitUntilConnected() async throws {
        let isConnected = await withTaskGroup(of: Bool.self) { [events] group in
            group.addTask {
                for await case .connected in events { return true }
                return false
            }
            group.addTask {
                try? await Task.sleep(for: Self.firstConnection)
                return false
            }
            let first = await group.next() ?? false
            group.cancelAll()
            return first
        }
        guard !isConnected else { return }
        let reason = problem ?? "no answer"
        throw CommandError(
            .unreachable,
            "no NATS server of the setting cluster can be used (\(reason)): start the servers, or mend the setting"
        )
    }

    /// The reason why no server is connected; nil while one is.
    var problem: String? {
        guard !connection.isConnected else { return nil }
        return state.lastError.withLock { $0?.reason } ?? "it is being connected"
    }
}
