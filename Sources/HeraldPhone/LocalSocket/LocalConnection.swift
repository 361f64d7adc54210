import Foundation
import HeraldDevice
import HeraldModel
import NIOCore

/// Serves the requests of one connection of the local socket.
struct LocalConnection: Sendable {
    /// The most requests of one connection that wait for a notification or for changes.
    private static let maximumWaiting = 16

    private let agent: DeviceAgent
    private let peer: LocalPeer
    private let outbound: NIOAsyncChannelOutboundWriter<ByteBuffer>

    static func serve(_ channel: NIOAsyncChannel<ByteBuffer, ByteBuffer>, _ agent: DeviceAgent) async {
        // An error only ends the connection.
        try? await channel.executeThenClose { inbound, outbound in
            guard let id = await agent.openConnection(limit: LocalSocket.maximumConnections) else {
                let words = "there are already \(LocalSocket.maximumConnections) connections"
                try await outbound.write(ByteBuffer(bytes: LocalMessage.failure(.null, words)))
                return
            }
            let (lines, continuation) = AsyncStream<[UInt8]>.makeStream(
                bufferingPolicy: .bufferingOldest(LocalPeer.maximumWaiting)
            )
            let peer = LocalPeer(id: id, channel: channel.channel, lines: continuation)
            let connection = LocalConnection(agent: agent, peer: peer, outbound: outbound)
            await withTaskGroup(of: Void.self) { group in
                group.addTask {
                    for await line in lines {
                        do { try await outbound.write(ByteBuffer(bytes: line)) } catch { return }
                    }
                }
                try? await connection.read(inbound)
                // Pending answers are still sent.
                continuation.finish()
                group.addTask { try? await Task.sleep(for: LocalSocket.closeTimeout) }
                await group.next()
                group.cancelAll()
            }
            await agent.closed(peer)
        }
    }

    private func read(_ inbound: NIOAsyncChannelInboundStream<ByteBuffer>) async throws {
        try await withThrowingTaskGroup(of: Void.self) { waiting in
            defer { waiting.cancelAll() }
            var rest: [UInt8] = []
            let limit = ConcurrencyLimit(Self.maximumWaiting)
            for try await bytes in inbound {
                rest += bytes.readableBytesView
                while let end = rest.firstIndex(of: UInt8(ascii: "\n")) {
                    let line = Array(rest[..<end])
                    rest.removeSubrange(...end)
                    guard line.count <= LocalSocket.maximumLineBytes else { return tooLong() }
                    if let reply = await take(line) {
                        guard let permit = limit.take() else {
                            peer.send(
                                LocalMessage.failure(reply.id, "too many requests of this connection are waiting")
                            )
                            continue
                        }
                        waiting.addTask {
                            await reply.run()
                            permit.release()
                        }
                    }
                }
                guard rest.count <= LocalSocket.maximumLineBytes else { return tooLong() }
            }
        }
    }

    private func tooLong() {
        peer.send(LocalMessage.failure(.null, "a line is longer than \(LocalSocket.maximumLineBytes) bytes"))
    }

    /// The requests beside the actions of a user (``PhoneAction``).
    private enum Verb: String, CaseIterable {
        case register, state, done, languages, device, watch, shown, pending
    }

    private static var unknownVerb: DeviceError {
        let verbs = (Verb.allCases.map(\.rawValue) + PhoneAction.verbs).map { "\"\($0)\"" }.joined(separator: ", ")
        return DeviceError(.notPossible, "\"do\" must be one of \(verbs)")
    }

    /// A reply that has to wait.
    private struct PendingReply: Sendable {
        let id: PayloadValue
        let run: @Sendable () async -> Void
    }

    /// Answers a request, or returns a reply that has to wait.
    private func take(_ line: [UInt8]) async -> PendingReply? {
        guard case .object(let members, _) = PayloadReader.read(line) else {
            peer.send(
                LocalMessage.failure(.null, "a line must be an object of JSON, like {\"id\":1,\"do\":\"device\"}")
            )
            return nil
        }
        let id = members["id"] ?? .null
        do {
            switch members["do"]?.text.flatMap({ Verb(rawValue: $0) }) {
            case .register:
                let topic = try topic(members)
                try await agent.register(topic, wants: try wants(members), peer)
                peer.send(LocalMessage.answer(id))
            case .state:
                guard let state = members["state"]?.text.flatMap({ AppState(rawValue: $0) }), state != .endedByUser
                else {
                    throw DeviceError(.notPossible, "\"state\" must be foreground, background or not running")
                }
                try await agent.move(try topic(members), to: state, peer)
                peer.send(LocalMessage.answer(id))
            case .done:
                guard let apnsID = members["apns_id"]?.text,
                    let outcome = members["result"]?.text.flatMap({ DisplayRecord.BackgroundOutcome(rawValue: $0) }),
                    outcome != .timedOut
                else {
                    throw DeviceError(
                        .notPossible,
                        "\"done\" needs \"apns_id\", and \"result\": new data, no data or failed"
                    )
                }
                try await agent.done(try topic(members), apnsID: apnsID, outcome: outcome, peer)
                peer.send(LocalMessage.answer(id))
            case .languages:
                let languages = await agent.languages
                peer.send(LocalMessage.answer(id, ["languages": .array(languages.map { .string($0) })]))
            case .device: peer.send(LocalMessage.answer(id, "device", await agent.snapshot()))
            case .watch:
                peer.send(LocalMessage.answer(id))
                return PendingReply(id: id) { await watch() }
            case .shown: return try shown(id, members)
            case .pending:
                let topic = members["topic"] == nil ? nil : try topic(members)
                peer.send(LocalMessage.answer(id, "pending", try await agent.pending(of: topic)))
            case nil:
                guard PhoneAction.verbs.contains(members["do"]?.text ?? "") else { throw Self.unknownVerb }
                try await agent.perform(try JSONDecoder().decode(PhoneAction.self, from: Data(line)))
                peer.send(LocalMessage.answer(id))
            }
        } catch DecodingError.dataCorrupted(let context) {
            peer.send(LocalMessage.failure(id, context.debugDescription))
        } catch {
            peer.send(LocalMessage.failure(id, "\(error)"))
        }
        return nil
    }

    /// Sends a snapshot after each change, as fast as the peer reads.
    private func watch() async {
        for await snapshot in await agent.snapshots() {
            let line = LocalMessage.line(encodable: WatchedDevice(event: "device", device: snapshot))
            do { try await outbound.write(ByteBuffer(bytes: line)) } catch { return }
        }
    }

    private struct WatchedDevice: Encodable {
        let event: String
        let device: PhoneSnapshot
    }

    private func shown(_ id: PayloadValue, _ members: [String: PayloadValue]) throws -> PendingReply? {
        guard let name = members["notification"]?.text ?? members["apns_id"]?.text,
            members["notification"] != nil || NotificationID(name) != nil
        else {
            throw DeviceError(
                .notPossible,
                "\"shown\" needs the \"apns_id\", a UUID, or the \"notification\" of a local one"
            )
        }
        let seconds = min(max(members["wait"]?.double ?? 0, 0), 600)
        return PendingReply(id: id) { [agent, peer] in
            if let record = await agent.displayRecord(named: name, within: .milliseconds(Int64(seconds * 1000))) {
                peer.send(LocalMessage.answer(id, "shown", record))
            } else if !Task.isCancelled {
                peer.send(LocalMessage.failure(id, "no notification \(name) has arrived on this device"))
            }
        }
    }

    private func topic(_ members: [String: PayloadValue]) throws -> Topic {
        guard let topic = members["topic"]?.text.flatMap({ Topic($0) }) else {
            throw DeviceError(.notPossible, "\"topic\" must be an app, like com.example.app")
        }
        return topic
    }

    private func wants(_ members: [String: PayloadValue]) throws -> [NotificationKind]? {
        guard let value = members["wants"] else { return nil }
        let kinds = value.elements?.map { $0.text.flatMap { NotificationKind(rawValue: $0) } } ?? [nil]
        guard !kinds.contains(nil) else {
            throw DeviceError(.notPossible, "\"wants\" must be a list of \"alert\", \"badge\" and \"sound\"")
        }
        return NotificationKind.allCases.filter { kinds.contains($0) }
    }
}
