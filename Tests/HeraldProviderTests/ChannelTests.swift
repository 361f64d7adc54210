import HeraldModel
import HeraldTestSupport
import Testing

@testable import HeraldProvider

/// Channels and broadcasts, against the real listeners.
@Suite(.timeLimit(.minutes(10)))
struct `a client's channels` {
    private func value<Value>(_ answer: ChannelAnswer<Value>) throws -> Value {
        guard case .done(let value) = answer else { throw Unexpected(answer: "\(answer)") }
        return value
    }

    private struct Unexpected: Error {
        let answer: String
    }

    @Test func `are created, read, listed, sent to and deleted`() async throws {
        try await TestService.run { service in
            let app = try #require(TestService.topic)
            try await withProviderClient(service.configuration) { client in
                let channel = try value(try await client.createChannel(of: app, storage: .newest))
                #expect(try value(try await client.channel(channel.id, of: app)) == channel)
                let other = try value(try await client.createChannel(of: app, storage: .none))
                #expect(Set(try value(try await client.channels(of: app))) == [channel.id, other.id])

                var payload = Payload()
                payload.liveActivity = try LiveActivity(contentState: ["home": 1], timestamp: service.trust.now)
                var broadcast = try BroadcastRequest(app: app, channel: channel.id, payload: payload)
                broadcast.expiration = .at(service.trust.now + .seconds(3600))
                let id = NotificationID.random()
                broadcast.id = id
                guard case .accepted(let receipt) = try await client.send(broadcast) else {
                    Issue.record("not accepted")
                    return
                }
                #expect(receipt.id == id.description && receipt.uniqueID != nil)

                #expect(try value(try await client.deleteChannel(channel.id, of: app)) == channel.id)
                guard case .refused(let refusal) = try await client.send(broadcast) else {
                    Issue.record("not refused")
                    return
                }
                #expect(refusal.reason.known == .channelNotRegistered)
                #expect(refusal.id == id.description)
                guard case .refused(let gone) = try await client.channel(channel.id, of: app) else {
                    Issue.record("not gone")
                    return
                }
                #expect(gone.reason.known == .channelNotRegistered)
            }
        }
    }

    @Test func `are not created twice when the answer is lost`() async throws {
        try await TestService.run { service in
            let app = try #require(TestService.topic)
            let proxy = try await FreezingProxy(to: service.port)
            var configuration = service.configuration
            configuration.port = proxy.port
            configuration.connections.pingBusyAfter = .milliseconds(200)
            // More than a machine that is busy with other tests takes for an answer.
            configuration.connections.pingTimeout = .seconds(20)
            configuration.retry.repeatsAmbiguous = true
            // As a journal says it, which knows notifications alone.
            configuration.resolver = { _ in .neverArrived }
            try await withProviderClient(configuration) { client in
                let before = try value(try await client.channels(of: app))
                proxy.freeze()
                let error = await #expect(throws: ProviderError.self) {
                    _ = try await client.createChannel(of: app, storage: .newest)
                }
                #expect(error?.mayHaveArrived == true)
                let after = try value(try await client.channels(of: app))
                #expect(before.isEmpty && after.isEmpty)
            }
            try await proxy.close()
        }
    }
}
