import HeraldDevice
import NIOCore
import NIOPosix
import Testing

@testable import HeraldPhone

@Suite(.timeLimit(.minutes(10))) struct LocalClientTests {
    /// An agent that takes the registration and then sends lines, whatever it is asked.
    private func withAgent(sending lines: String, _ body: (String) async throws -> Void) async throws {
        let folder = try TemporaryFolder()
        let socket = folder.path + "/agent.sock"
        let server = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .bind(unixDomainSocketPath: socket) { channel in
                channel.eventLoop.makeCompletedFuture {
                    try NIOAsyncChannel<ByteBuffer, ByteBuffer>(wrappingChannelSynchronously: channel)
                }
            }
        try await server.executeThenClose { connections in
            try await withThrowingTaskGroup(of: Void.self) { group in
                defer { group.cancelAll() }
                group.addTask {
                    for try await connection in connections {
                        try await connection.executeThenClose { inbound, outbound in
                            var requests = inbound.makeAsyncIterator()
                            _ = try await requests.next()
                            try await outbound.write(ByteBuffer(string: #"{"id":1,"ok":true}"# + "\n" + lines))
                            while try await requests.next() != nil {}
                        }
                    }
                }
                try await body(socket)
            }
        }
    }

    @Test func `an app that does not read is let go and told so`() async throws {
        let limit = LocalClient.maximumUnread
        let event = #"{"event":"settings","granted":["alert"]}"# + "\n"
        try await withAgent(sending: String(repeating: event, count: limit + 1)) { socket in
            try await LocalApp.run(PhoneKit.topic, socket: socket) { app in
                await #expect(throws: DeviceError(.unreachable, "disconnected: \(limit) events were not read")) {
                    try await app.languages()
                }
                var heard = 0
                for await _ in app.events { heard += 1 }
                #expect(heard == limit)
            }
        }
    }
}
