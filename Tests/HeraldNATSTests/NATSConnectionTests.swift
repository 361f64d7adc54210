import Logging
import NIOCore
import NIOPosix
import Testing

@testable import HeraldNATS

/// The connection on a socket, against a server that does what a test says.
@Suite(.timeLimit(.minutes(5))) struct NATSConnectionTests {
    private typealias Event = NATSConnection.Event

    /// On a busy machine everything takes longer.
    private static let patience = Duration.seconds(240)

    /// Runs a connection to the server; the body gets its events in order.
    private func connect(
        _ server: ScriptedServer,
        _ change: (inout NATSConfiguration) throws -> Void = { _ in },
        body: (NATSConnection, inout AsyncStream<NATSConnection.Event>.Iterator) async throws -> Void
    ) async throws {
        var configuration = NATSConfiguration(
            servers: [NATSServerAddress(host: "127.0.0.1", port: server.port)],
            name: "test"
        )
        configuration.limits.connectTimeout = Self.patience
        configuration.limits.pingInterval = Self.patience
        try change(&configuration)
        let (events, continuation) = AsyncStream.makeStream(of: NATSConnection.Event.self)
        let connection = try NATSConnection(
            configuration,
            on: MultiThreadedEventLoopGroup.singleton.next(),
            logger: Logger(label: "test", factory: { _ in SwiftLogNoOpLogHandler() })
        ) { continuation.yield($0) }
        connection.start()
        var iterator = events.makeAsyncIterator()
        do {
            try await body(connection, &iterator)
        } catch {
            await connection.close()
            throw error
        }
        await connection.close()
    }

    private func publish(
        _ connection: NATSConnection,
        _ subject: String,
        within time: Duration = patience
    ) async -> PublishOutcome {
        await withCheckedContinuation { continuation in
            JetStream(connection).publish(ByteBuffer(string: "x"), to: subject, within: time) {
                continuation.resume(returning: $0)
            }
        }
    }

    private func request(_ connection: NATSConnection, _ subject: String) async -> Result<NATSMessage, NATSError> {
        await withCheckedContinuation { continuation in
            connection.request(ByteBuffer(string: "x"), to: subject, within: Self.patience) {
                continuation.resume(returning: $0)
            }
        }
    }

    private func reason(_ event: Event?) -> NATSError.Kind? {
        if case .disconnected(let error)? = event { error.kind } else { nil }
    }

    @Test(
        arguments: [
            ("HTTP/1.1 400 Bad Request\r\n", NATSError.Kind.protocolViolation), ("MSG a 1 1073741824\r\n", .tooLarge),
            ("PING\r\n", .protocolViolation), (String(repeating: "x", count: 5000), .protocolViolation),
            ("-ERR 'Authorization Violation'\r\n", .authorization),
            ("-ERR 'maximum connections exceeded'\r\n", .protocolViolation),
            (#"INFO {"server_id":"A","version":"1.4","max_payload":100}"# + "\r\n", .protocolViolation),
            (ScriptedServer.info + "MSG a 1 1073741824\r\n", .tooLarge),
            ("", .connectionLost),
        ]
    )
    func `a server that does not speak NATS is left, with the reason, and tried again`(
        text: String,
        kind: NATSError.Kind
    ) async throws {
        try await ScriptedServer.with { peer in
            try await peer.send(text)
            if !text.isEmpty { while true { _ = try await peer.line() } }
        } body: { server in
            try await connect(server) { connection, events in
                for _ in 0..<2 {
                    let event = await events.next()
                    #expect(reason(event) == kind)
                }
                #expect(!connection.isConnected && connection.serverInfo == nil)
                let outcome = await publish(connection, "a")
                #expect(outcome == .notSent(.notConnected))
            }
        }
    }

    @Test func `a server that says nothing is left after the time for connecting`() async throws {
        try await ScriptedServer.with { peer in
            _ = try await peer.line()
        } body: { server in
            try await connect(server, { $0.limits.connectTimeout = .milliseconds(50) }) { _, events in
                let event = await events.next()
                #expect(reason(event) == .timeout)
            }
        }
    }

    @Test func `a server that answers no PING is left`() async throws {
        try await ScriptedServer.with { peer in
            try await peer.accept()
            while true { _ = try await peer.line() }
        } body: { server in
            try await connect(server, { $0.limits.pingInterval = .milliseconds(20) }) { _, events in
                _ = await events.next()
                let event = await events.next()
                #expect(reason(event) == .connectionLost)
            }
        }
    }

    @Test func `settings that demand TLS refuse a server without it, and nothing is said in plain text`() async throws {
        try await ScriptedServer.with { peer in
            try await peer.send(ScriptedServer.info)
            let line = try await peer.line()
            Issue.record("the client said \(line)")
        } body: { server in
            try await connect(server, { $0.tls = NATSTLS() }) { _, events in
                let event = await events.next()
                #expect(reason(event) == .tls)
            }
            // A server that offers it, and something that was put behind its offer.
        }
        try await ScriptedServer.with { peer in
            let info = ScriptedServer.info.replacing("{", with: #"{"tls_required":true,"#)
            try await peer.send(info + "+OK\r\n")
            _ = try await peer.line()
        } body: { server in
            try await connect(server) { _, events in
                let event = await events.next()
                #expect(reason(event) == .tls)
            }
        }
    }

    @Test func `outcomes over a socket: stored, refused, nobody there, garbage, lost, and the next server`()
        async throws
    {
        try await ScriptedServer.with { peer in
            try await peer.accept()
            while true {
                let (subject, replyTo, _) = try await peer.publish()
                // In between: another INFO, a PING, a refused subject, and answers to requests that do not exist.
                try await peer.send(
                    ScriptedServer.info + "PING\r\n-ERR 'Permissions Violation for Publish to \"x\"'\r\n"
                )
                try await peer.message(replyTo + "0", #"{"stream":"S","seq":666}"#)
                try await peer.message("_INBOX.other.0", #"{"stream":"S","seq":666}"#, number: 77)
                switch subject {
                case "stored": try await peer.message(replyTo, #"{"stream":"S","seq":7}"#)
                case "refused":
                    try await peer.message(
                        replyTo,
                        #"{"error":{"code":400,"err_code":10164,"description":"busy"},"seq":0}"#
                    )
                case "nobody": try await peer.send("HMSG \(replyTo) 1 16 16\r\nNATS/1.0 503\r\n\r\n\r\n")
                case "garbage": try await peer.message(replyTo, "{{{{")
                default: return
                }
            }
        } body: { server in
            try await connect(server) { connection, events in
                for round in 1...2 {
                    let event = await events.next()
                    guard case .connected(let info)? = event else {
                        Issue.record("\(String(describing: event))")
                        return
                    }
                    #expect(info.serverName == "scripted")
                    #expect(connection.statistics.connects == UInt64(round))
                    #expect(await publish(connection, "stored") == .stored(sequence: 7))
                    let busy = JetStreamRefusal(
                        status: 400,
                        code: JetStreamRefusal.concurrentWrite,
                        description: "busy"
                    )
                    #expect(await publish(connection, "refused") == .refused(busy))
                    #expect(await publish(connection, "nobody") == .notSent(.noResponders))
                    #expect(await request(connection, "nobody") == .failure(.noResponders))
                    guard case .unknown(let garbage) = await publish(connection, "garbage") else {
                        Issue.record("garbage is an answer")
                        return
                    }
                    #expect(garbage.kind == .unreadableAnswer)
                    // The server closes the connection without an answer.
                    guard case .unknown(let lost) = await publish(connection, "lost") else {
                        Issue.record("the outcome is known")
                        return
                    }
                    #expect(lost.kind == .connectionLost)
                    let end = await events.next()
                    #expect(reason(end) == .connectionLost)
                }
            }
        }
    }

    @Test func `without an answer the outcome is unknown at the deadline, and a late answer changes nothing`()
        async throws
    {
        try await ScriptedServer.with { peer in
            try await peer.accept()
            let late = try await peer.publish()
            let next = try await peer.publish()
            try await peer.message(late.replyTo, #"{"stream":"S","seq":1}"#)
            try await peer.message(next.replyTo, #"{"stream":"S","seq":2}"#)
            _ = try await peer.line("NEVER")
        } body: { server in
            try await connect(server) { connection, events in
                _ = await events.next()
                #expect(await publish(connection, "late", within: .milliseconds(30)) == .unknown(.timeout))
                #expect(await publish(connection, "next") == .stored(sequence: 2))
                #expect(connection.statistics.lateAnswers == 1)
            }
        }
    }

    @Test func `closing ends what waits as unknown, and everything after it as not sent`() async throws {
        try await ScriptedServer.with { peer in
            try await peer.accept()
            _ = try await peer.publish()
            try await peer.send("MSG there 2 0\r\n\r\n")
            _ = try await peer.line("NEVER")
        } body: { server in
            try await connect(server) { connection, events in
                _ = await events.next()
                let (arrived, continuation) = AsyncStream.makeStream(of: Void.self)
                _ = try connection.subscribe(to: "there") { _ in continuation.finish() }
                async let waiting = publish(connection, "a")
                for await _ in arrived {}
                await connection.close()
                #expect(await waiting == .unknown(.closed))
                guard case .notSent(let error) = await publish(connection, "b") else {
                    Issue.record("it was sent")
                    return
                }
                #expect(error.kind == .closed)
                #expect(throws: NATSError.self) { try connection.publish(ByteBuffer(), to: "c") }
            }
        }
    }

    @Test func `a consumer that loses a message begins again behind the last one`() async throws {
        try await ScriptedServer.with { peer in
            try await peer.accept()
            var begins: [String] = []
            while true {
                let create = try await peer.publish()
                guard create.subject.hasPrefix("$JS.API.CONSUMER.CREATE.S.") else { continue }
                begins.append(create.payload)
                // The subscription of the consumer, and no other, is the second one of its round.
                let number = begins.count + 1
                func send(_ sequence: Int, _ count: Int) async throws {
                    let place = "$JS.ACK.S.c.1.\(sequence).\(count).1.0"
                    try await peer.message("s.\(sequence)", "x", number: number, replyTo: place)
                }
                try await peer.message(create.replyTo, #"{"num_pending":9}"#)
                switch begins.count {
                case 1:
                    try await send(4, 1)
                    try await send(6, 3)
                case 2:
                    #expect(create.payload.contains(#""opt_start_seq":5"#))
                    try await send(5, 1)
                    try await send(6, 2)
                default:
                    // The server says nothing more: after a while the consumer begins again.
                    break
                }
            }
        } body: { server in
            try await connect(server) {
                $0.limits.consumerHeartbeat = Self.patience
            } body: { connection, events in
                _ = await events.next()
                let (steps, continuation) = AsyncStream.makeStream(of: String.self)
                let consumer = OrderedConsumer(JetStream(connection), stream: "S", subjects: ["s.>"], from: .newest) {
                    event in
                    switch event {
                    case .message(let message): continuation.yield("\(message.sequence)")
                    case .caughtUp: continuation.yield("caught up")
                    case .interrupted: continuation.yield("interrupted")
                    case .resumed: continuation.yield("resumed")
                    }
                }
                consumer.start()
                var heard: [String] = []
                for await step in steps {
                    heard.append(step)
                    if step == "6" { break }
                }
                #expect(heard == ["4", "caught up", "interrupted", "resumed", "5", "6"])
                consumer.stop()
            }
        }
    }
}
