import Foundation
import HeraldDevice
import HeraldJSON
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
        let id: JSON
        let run: @Sendable () async -> Void
    }

    /// Answers a request, or returns a reply that has to wait.
    private func take(_ line: [UInt8]) async -> PendingReply? {
        guard let members = JSON.Object(line, rules: .lenient) else {
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
            case .device: peer.send(try LocalMessage.answer(id, "device", await agent.snapshot()))
            case .watch:
                peer.send(LocalMessage.answer(id))
                return PendingReply(id: id) { await watch(id) }
            case .shown: return try shown(id, members)
            case .pending:
                let topic = members["topic"] == nil ? nil : try topic(members)
                peer.send(try LocalMessage.answer(id, "pending", try await agent.pending(of: topic)))
            case nil:
                guard PhoneAction.verbs.contains(members["do"]?.text ?? "") else { throw Self.unknownVerb }
                try await agent.perform(try JSON.object(members).decode(PhoneAction.self))
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
    private func watch(_ id: JSON) async {
        for await snapshot in await agent.snapshots() {
            do {
                let line = LocalMessage.event("device", ["device": try JSON(encoding: snapshot)])
                try await outbound.write(ByteBuffer(bytes: line))
            } catch {
                return peer.send(LocalMessage.failure(id, "the device is not watched any more: \(error)"))
            }
        }
    }

    private func shown(_ id: JSON, _ members: JSON.Object) throws -> PendingReply? {
        guard let name = members["notification"]?.text ?? members["apns_id"]?.text,
            members["notification"] != nil || NotificationID(name) != nil
        else {
            throw DeviceError(
                .notPossible,
                "\"shown\" needs the \"apns_id\", a UUID, or the \"notification\" of a local one"
            )
        }
        guard let seconds = (members["wait"] ?? .number(0)).double, seconds >= 0 else {
            throw DeviceError(.notPossible, "\"wait\" must be a number of seconds from 0 to 600")
        }
        return PendingReply(id: id) { [agent, peer] in
            let wait = Duration.milliseconds(Int64(min(seconds, 600) * 1000))
            guard let record = await agent.displayRecord(named: name, within: wait) else {
                guard !Task.isCancelled else { return }
                return peer.send(LocalMessage.failure(id, "no notification \(name) has arrived on this device"))
            }
            do {
                peer.send(try LocalMessage.answer(id, "shown", record))
            } catch {
                peer.send(LocalMessage.failure(id, "\(error)"))
            }
        }
    }

    private func topic(_ members: JSON.Object) throws -> Topic {
        guard let topic = members["topic"]?.text.flatMap({ Topic($0) }) else {
            throw DeviceError(.notPossible, "\"topic\" must be an app, like com.example.app")
        }
        return topic
    }

    private func wants(_ members: JSON.Object) throws -> [NotificationKind]? {
        guard let value = members["wants"] else { return nil }
        let kinds = value.elements?.map { $0.text.flatMap { NotificationKind(rawValue: $0) } } ?? [nil]
        guard !kinds.contains(nil) else {
            throw DeviceError(.notPossible, "\"wants\" must be a list of \"alert\", \"badge\" and \"sound\"")
        }
        return NotificationKind.allCases.filter { kinds.contains($0) }
    }
}
