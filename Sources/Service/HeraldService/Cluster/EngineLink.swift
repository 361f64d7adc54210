import Foundation
import HeraldCluster
package import HeraldNATS
import HeraldTrust
package import Logging
import NIOPosix
import Synchronization

/// A connection to a cluster's NATS servers, and its present state in words.
package final class EngineLink: Sendable {
    package let connection: NATSConnection
    package var jetStream: JetStream { JetStream(connection) }
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
    package init(_ configuration: ClusterConfiguration, logger: Logger) throws {
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
    package func waitUntilConnected() async throws {
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
        let remedy =
            switch state.lastError.withLock({ $0?.kind }) {
            case .tls: "mend cluster-ca and cluster-certificate, or the servers' certificates"
            case .authorization: "mend cluster-credentials, or the users of the servers"
            default: "start the servers, or mend the setting"
            }
        throw CommandError(
            .unreachable,
            "no NATS server of the setting cluster can be used (\(problem ?? "no answer")): \(remedy)"
        )
    }

    /// Does the work of a start.
    ///
    /// The connection is closed if the work fails, and ``ClusterStart/leaveTime`` after its task is cancelled: then everything
    /// that waits for an answer fails.
    package func starting<Value>(_ work: () async throws -> Value) async throws -> Value {
        do {
            return try await withTaskCancellationHandler {
                try await work()
            } onCancel: {
                connection.close(after: ClusterStart.leaveTime)
            }
        } catch {
            await connection.close()
            throw error
        }
    }

    /// The present server, in words.
    package var serverName: String { connection.serverInfo.map { "nats-server \($0.serverName)" } ?? "no NATS server" }

    /// The reason why no server is connected; nil while one is.
    package var problem: String? {
        guard !connection.isConnected else { return nil }
        return state.lastError.withLock { $0.map(Self.words) } ?? "it is being connected"
    }

    private static func words(_ error: NATSError) -> String {
        guard error.kind == .tls, let fault = TLSFault(error) else { return error.reason }
        // Without the errors of the TLS library, which follow.
        let place = error.reason.firstRange(of: " failed: ").map { error.reason[..<$0.lowerBound] } ?? "TLS"
        switch fault {
        case .untrusted:
            return "\(place) failed: no authority of cluster-ca has signed the server's certificate for this name"
        case .alert(TLSAlert("certificate_required")):
            return "\(place) failed: the server asks for a certificate of this node"
        case .alert(let alert):
            let reason = alert.certificateFault.map { "the server refuses this node's certificate (\($0))" }
            return "\(place) failed: \(reason ?? fault.description)"
        default: return "\(place) failed: \(fault)"
        }
    }
}
