import Foundation
import HeraldDevice
package import HeraldJSON
import NIOCore
import NIOPosix
import Synchronization

/// A connection to the agent's local socket: requests with answers, and events.
package final class LocalClient: Sendable {
    /// The longest line, in bytes.
    ///
    /// The longest is a list of 1,024 pending local notifications with payloads of 4 KiB each (``PhoneLimits``): some 4.4 MB.
    private static let maximumLineBytes = 16 << 20
    /// The most unread events; a client with more is disconnected, so that no event is dropped silently.
    package static let maximumUnread = 1024

    private struct State {
        var lastID = 0
        var waiting: [Int: AsyncStream<JSON.Object>.Continuation] = [:]
        var isClosed = false
        var reason = LocalClient.gone
    }

    private let state = Mutex(State())
    private let outbound: NIOAsyncChannelOutboundWriter<ByteBuffer>
    /// Events, as lines.
    package let events: AsyncStream<[UInt8]>
    private let event: AsyncStream<[UInt8]>.Continuation

    private init(_ outbound: NIOAsyncChannelOutboundWriter<ByteBuffer>) {
        self.outbound = outbound
        (events, event) = AsyncStream.makeStream(bufferingPolicy: .bufferingOldest(Self.maximumUnread))
    }

    /// Connects for as long as `body` runs.
    ///
    /// Throws ``DeviceError/Code/unreachable`` if no agent listens there, and the error of `body`.
    package static func with<Result: Sendable>(
        socket: String,
        _ body: @Sendable (LocalClient) async throws -> Result
    ) async throws -> Result {
        let channel: NIOAsyncChannel<ByteBuffer, ByteBuffer>
        do {
            channel = try await SocketPath.shortened(socket) { path in
                try await ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton)
                    .connect(unixDomainSocketPath: path) { channel in
                        channel.eventLoop.makeCompletedFuture {
                            try NIOAsyncChannel<ByteBuffer, ByteBuffer>(wrappingChannelSynchronously: channel)
                        }
                    }
            }
        } catch {
            throw DeviceError(
                .unreachable,
                "no agent is running (nothing listens at \(socket)): start it with `herald agent run`, or, as a service, with "
                    + "`systemctl start herald-agent`"
            )
        }
        return try await channel.executeThenClose { inbound, outbound in
            let client = LocalClient(outbound)
            return try await withThrowingTaskGroup(of: Void.self) { group in
                defer { group.cancelAll() }
                group.addTask {
                    defer { client.close() }
                    try? await client.read(inbound)
                }
                return try await body(client)
            }
        }
    }

    /// Sends a request, and waits for its answer.
    ///
    /// Throws ``DeviceError/Code/notPossible`` with the agent's explanation if it refuses, ``DeviceError/Code/unreachable`` if
    /// the connection is closed.
    @discardableResult
    package func ask(_ request: JSON.Object) async throws -> JSON.Object {
        // Before the request is sent: its answer may come at once.
        let (answers, waiting) = AsyncStream<JSON.Object>.makeStream()
        let id = state.withLock { state in
            state.lastID += 1
            if state.isClosed { waiting.finish() } else { state.waiting[state.lastID] = waiting }
            return state.lastID
        }
        defer { state.withLock { _ = $0.waiting.removeValue(forKey: id) } }
        var request = request
        request["id"] = .number(JSON.Number(id))
        do {
            try await outbound.write(ByteBuffer(bytes: LocalMessage.line(request)))
        } catch {
            throw state.withLock { $0.reason }
        }
        guard let answer = await answers.first(where: { _ in true }) else {
            try Task.checkCancellation()
            throw state.withLock { $0.reason }
        }
        if let words = answer["error"]?.text { throw DeviceError(.notPossible, words) }
        return answer
    }

    private static let gone = DeviceError(.unreachable, "the agent closed the connection")

    private func read(_ inbound: NIOAsyncChannelInboundStream<ByteBuffer>) async throws {
        var rest: [UInt8] = []
        for try await bytes in inbound {
            rest += bytes.readableBytesView
            while let end = rest.firstIndex(of: UInt8(ascii: "\n")) {
                guard take(Array(rest[..<end])) else { return }
                rest.removeSubrange(...end)
            }
            guard rest.count <= Self.maximumLineBytes else { return }
        }
    }

    /// - Returns: Whether to read on.
    private func take(_ line: [UInt8]) -> Bool {
        // Without its answer, a request would wait for ever.
        guard let members = JSON.Object(line, rules: .lenient) else {
            return end(DeviceError(.notPossible, "the agent's answer cannot be read: it is of another version"))
        }
        guard members["event"] == nil, let id = members["id"]?.integer else {
            if members["event"] == nil, let words = members["error"]?.text {
                return end(DeviceError(.notPossible, words))
            }
            guard case .dropped = event.yield(line) else { return true }
            return end(DeviceError(.unreachable, "disconnected: \(Self.maximumUnread) events were not read"))
        }
        state.withLock { $0.waiting[id] }?.yield(members)
        return true
    }

    /// Ends the connection for a reason.
    /// - Returns: Whether to read on: no.
    private func end(_ reason: DeviceError) -> Bool {
        state.withLock { $0.reason = reason }
        return false
    }

    private func close() {
        let waiting = state.withLock { state in
            state.isClosed = true
            return state.waiting
        }
        for continuation in waiting.values { continuation.finish() }
        event.finish()
    }
}
