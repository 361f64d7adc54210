import HeraldModel
import HeraldWire
import NIOCore
import NIOPosix
import Synchronization
import Testing

@testable import HeraldProvider

/// The client of the binary interface, over real sockets, against a service that does what the test says.
@Suite(.timeLimit(.minutes(10)), .serialized)
struct BinaryClientTests {
    /// Outcomes of several notifications that are sent at once.
    private func send(_ count: Int, _ client: BinaryClient) async throws -> [Int: BinaryAnswer] {
        try await withThrowingTaskGroup(of: (Int, BinaryAnswer).self) { group in
            for number in 0..<count {
                group.addTask { (number, try await client.send(BinaryPeer.request(number))) }
            }
            return try await group.reduce(into: [:]) { $0[$1.0] = $1.1 }
        }
    }

    @Test func `all are accepted once, over several connections, and the first connection starts with a checkpoint`()
        async throws
    {
        let peer = try await BinaryPeer()
        var configuration = try await peer.configuration()
        configuration.maximumUnconfirmed = 100
        let answers = try await withBinaryClient(configuration) { try await send(350, $0) }
        #expect(answers.count == 350 && answers.values.allSatisfy { $0 == .accepted })
        let seen = peer.seen
        #expect(seen.taken.count == 350 && seen.taken.values.allSatisfy { $0 == 1 })
        #expect(seen.connections >= 5)
        #expect(seen.frames.filter { $0.connection == 1 }.map(\.isCheckpoint) == [true])
        #expect(seen.frames.allSatisfy { $0.index <= 101 })
        try await peer.close()
    }

    @Test func `a bad notification is refused, and its neighbours are accepted once`() async throws {
        let bad = BinaryPeer.request(250).token
        let peer = try await BinaryPeer { $0.token == bad ? .refuse(.invalidToken) : BinaryPeer.proper($0) }
        let answers = try await withBinaryClient(try peer.configuration()) { try await send(500, $0) }
        for (number, answer) in answers {
            guard number == 250 else {
                #expect(answer == .accepted)
                continue
            }
            guard case .refused(let refusal) = answer else {
                Issue.record("it was not refused")
                continue
            }
            #expect(refusal.status == 8 && refusal.reason.known == .badDeviceToken)
        }
        let seen = peer.seen
        #expect(seen.taken.count == 499 && seen.taken.values.allSatisfy { $0 == 1 })
        try await peer.close()
    }

    @Test
    func `after a connection without an answer its notifications are uncertain, and the next starts with a checkpoint`()
        async throws
    {
        // On a busy machine the second connection may take fewer.
        let closed = Mutex<Int?>(nil)
        let peer = try await BinaryPeer { frame in
            closed.withLock { number in
                guard number == nil, frame.index == 10, !frame.isCheckpoint else { return BinaryPeer.proper(frame) }
                number = frame.connection
                return .close
            }
        }
        var configuration = try await peer.configuration()
        configuration.maximumUnconfirmed = 50
        let answers = try await withBinaryClient(configuration) { try await send(200, $0) }
        var uncertain = 0
        let seen = peer.seen
        for (number, answer) in answers {
            let times = seen.taken[BinaryPeer.request(number).token] ?? 0
            switch answer {
            case .accepted: #expect(times == 1)
            case .uncertain(let error):
                uncertain += 1
                #expect(error.mayHaveArrived && times <= 1)
            case .refused: Issue.record("nothing was refused")
            }
        }
        #expect((9...50).contains(uncertain))
        let next = try #require(closed.withLock { $0 }) + 1
        #expect(seen.frames.filter { $0.connection == next }.map(\.isCheckpoint) == [true])
        try await peer.close()
    }

    @Test func `a stopping service names the last it accepted, and the rest is resent`() async throws {
        let previous = Mutex<UInt32>(0)
        let peer = try await BinaryPeer { frame in
            guard frame.connection == 2, !frame.isCheckpoint else { return BinaryPeer.proper(frame) }
            guard frame.index == 8 else {
                previous.withLock { $0 = frame.identifier }
                return .take
            }
            return .answer(BinaryErrorResponse(.shutdown, identifier: previous.withLock { $0 }))
        }
        let answers = try await withBinaryClient(try peer.configuration()) { try await send(40, $0) }
        #expect(answers.values.allSatisfy { $0 == .accepted })
        #expect(peer.seen.taken.count == 40 && peer.seen.taken.values.allSatisfy { $0 == 1 })
        try await peer.close()
    }

    @Test(arguments: [UInt64(1), 2, 3, 4])
    func `the reported outcomes match the service's ledger under random failures`(seed: UInt64) async throws {
        let state = Mutex((draw: Draw(seed), last: [Int: UInt32]()))
        let peer = try await BinaryPeer { frame in
            guard !frame.isCheckpoint else { return .refuse(.missingDeviceToken) }
            return state.withLock { state in
                switch state.draw.next(below: 200) {
                case 0: return .close
                case 1: return .refuse(.protocolError)
                case 2:
                    guard let last = state.last[frame.connection] else { return .close }
                    return .answer(BinaryErrorResponse(.shutdown, identifier: last))
                default:
                    state.last[frame.connection] = frame.identifier
                    return .take
                }
            }
        }
        var configuration = try await peer.configuration()
        configuration.maximumUnconfirmed = 200
        let answers = try await withBinaryClient(configuration) { try await send(1000, $0) }
        let taken = peer.seen.taken
        #expect(answers.count == 1000)
        for (number, answer) in answers {
            let times = taken[BinaryPeer.request(number).token] ?? 0
            switch answer {
            case .accepted: #expect(times == 1)
            case .refused: #expect(times == 0)
            case .uncertain: #expect(times <= 1)
            }
        }
        #expect(answers.values.contains(.accepted))
        try await peer.close()
    }

    /// Numbers that are the same for the same seed (SplitMix64).
    private struct Draw {
        private var state: UInt64

        init(_ seed: UInt64) {
            state = seed
        }

        mutating func next(below limit: UInt64) -> UInt64 {
            state &+= 0x9E37_79B9_7F4A_7C15
            var word = state
            word = (word ^ (word >> 30)) &* 0xBF58_476D_1CE4_E5B9
            word = (word ^ (word >> 27)) &* 0x94D0_49BB_1331_11EB
            return (word ^ (word >> 31)) % limit
        }
    }

    @Test func `after a processing error the client backs off and returns the refusal`() async throws {
        let bad = BinaryPeer.request(0).token
        let peer = try await BinaryPeer { $0.token == bad ? .refuse(.processingError) : BinaryPeer.proper($0) }
        let answers = try await withBinaryClient(try peer.configuration()) { try await send(3, $0) }
        guard case .refused(let refusal) = answers[0] else {
            Issue.record("it was not refused")
            return
        }
        #expect(refusal.reason.known == .internalServerError)
        #expect(answers[1] == .accepted && answers[2] == .accepted)
        try await peer.close()
    }

    @Test func `a service that never answers the checkpoint gets no notification`() async throws {
        let peer = try await BinaryPeer { _ in .ignore }
        var configuration = try await peer.configuration()
        configuration.timeout = .milliseconds(200)
        configuration.waitsForService = false
        try await withBinaryClient(configuration) { client in
            let error = await #expect(throws: ProviderError.self) { _ = try await client.send(BinaryPeer.request(0)) }
            #expect(error?.code == .timedOut && error?.mayHaveArrived == false)
        }
        #expect(peer.seen.frames.allSatisfy { $0.isCheckpoint })
        try await peer.close()
    }

    @Test func `a service that falls silent leaves the written notifications uncertain`() async throws {
        let peer = try await BinaryPeer { $0.isCheckpoint && $0.index > 1 ? .ignore : BinaryPeer.proper($0) }
        var configuration = try await peer.configuration()
        configuration.timeout = .seconds(2)
        let answers = try await withBinaryClient(configuration) { try await send(5, $0) }
        for answer in answers.values {
            guard case .uncertain(let error) = answer else {
                Issue.record("it is not uncertain")
                continue
            }
            #expect(error.code == .timedOut && error.mayHaveArrived)
        }
        try await peer.close()
    }

    @Test(arguments: [[UInt8]("HTTP/1.1 400".utf8), [8, 2, 0, 0, 0, 0]])
    func `a server of another protocol is reported at once`(words: [UInt8]) async throws {
        let peer = try await BinaryPeer { _ in .say(words) }
        try await withBinaryClient(try peer.configuration()) { client in
            let error = await #expect(throws: ProviderError.self) { _ = try await client.send(BinaryPeer.request(0)) }
            #expect(error?.code == .badAnswer)
        }
        try await peer.close()
    }

    @Test func `a service that closes on the certificate leaves nothing in doubt`() async throws {
        let peer = try await BinaryPeer { _ in .close }
        var configuration = try await peer.configuration()
        configuration.waitsForService = false
        try await withBinaryClient(configuration) { client in
            let error = await #expect(throws: ProviderError.self) { _ = try await client.send(BinaryPeer.request(0)) }
            #expect(error?.code == .unreachable && error?.mayHaveArrived == false)
            #expect(error?.message.contains("refused the certificate") == true)
        }
        try await peer.close()
    }

    @Test func `a certificate of another authority is refused`() async throws {
        let peer = try await BinaryPeer()
        let other = try await BinaryPeer()
        var configuration = try await peer.configuration()
        configuration.certificate = try await other.configuration().certificate
        try await withBinaryClient(configuration) { client in
            let error = await #expect(throws: ProviderError.self) { _ = try await client.send(BinaryPeer.request(0)) }
            #expect(error?.code == .untrusted)
        }
        #expect(peer.seen.frames.isEmpty)
        try await peer.close()
        try await other.close()
    }

    /// Refuses each tunnel, and counts them.
    private final class Refuser: ChannelInboundHandler, Sendable {
        typealias InboundIn = ByteBuffer
        typealias OutboundOut = ByteBuffer
        private let count: Counter

        final class Counter: Sendable {
            let count = Mutex(0)
        }

        init(_ count: Counter) {
            self.count = count
        }

        func channelRead(context: ChannelHandlerContext, data: NIOAny) {
            count.count.withLock { $0 += 1 }
            let answer = ByteBuffer(string: "HTTP/1.1 403 Filtered\r\n\r\n")
            context.writeAndFlush(wrapOutboundOut(answer), promise: nil)
        }
    }

    @Test func `a proxy that makes no tunnel is asked once, and the send fails`() async throws {
        let peer = try await BinaryPeer()
        let counter = Refuser.Counter()
        let proxy = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .childChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    try channel.pipeline.syncOperations.addHandler(Refuser(counter))
                }
            }
            .bind(host: "127.0.0.1", port: 0).get()
        var configuration = try await peer.configuration()
        configuration.proxy = try ProviderProxy("http://127.0.0.1:\(try #require(proxy.localAddress?.port))")
        // A client that waits asks hundreds of times until then.
        configuration.totalTimeout = .seconds(60)
        try await withBinaryClient(configuration) { client in
            let error = await #expect(throws: ProviderError.self) { _ = try await client.send(BinaryPeer.request(0)) }
            #expect(error?.code == .badProxy && error?.mayHaveArrived == false)
            #expect(error?.message.contains("refuses a tunnel to") == true)
        }
        #expect(counter.count.withLock { $0 } == 1 && peer.seen.connections == 0)
        try await proxy.close()
        try await peer.close()
    }

    @Test func `a cancelled send returns at once and delays no other`() async throws {
        let wasWritten = AsyncStream<Void>.makeStream()
        let peer = try await BinaryPeer { frame in
            if !frame.isCheckpoint { wasWritten.continuation.yield() }
            return BinaryPeer.proper(frame)
        }
        var configuration = try await peer.configuration()
        configuration.confirmAfter = .seconds(3600)
        let client = try BinaryClient(configuration)
        await withDiscardingTaskGroup { group in
            group.addTask {
                await #expect(throws: CancellationError.self) { _ = try await client.send(BinaryPeer.request(0)) }
            }
            for await _ in wasWritten.stream { break }
            group.cancelAll()
        }
        async let answer = client.send(BinaryPeer.request(1))
        for await _ in wasWritten.stream { break }
        // The end waits for nothing but the answer.
        await client.shutdown()
        #expect(try await answer == .accepted)
        #expect(peer.seen.taken.count == 2)
        let error = await #expect(throws: ProviderError.self) { _ = try await client.send(BinaryPeer.request(2)) }
        #expect(error?.code == .shutDown)
        try await peer.close()
    }

    @Test func `the queue is bounded in length and time`() async throws {
        let peer = try await BinaryPeer { _ in .ignore }
        var configuration = try await peer.configuration()
        configuration.maximumWaiting = 2
        try await withBinaryClient(configuration) { client in
            await withTaskGroup(of: ProviderError.Code?.self) { group in
                for number in 0..<10 {
                    group.addTask {
                        do {
                            _ = try await client.send(BinaryPeer.request(number))
                            return nil
                        } catch {
                            return (error as? ProviderError)?.code
                        }
                    }
                }
                for _ in 0..<8 {
                    let code: ProviderError.Code? = await group.next() ?? nil
                    #expect(code == .overloaded)
                }
                group.cancelAll()
            }
        }
        configuration.totalTimeout = .milliseconds(200)
        try await withBinaryClient(configuration) { client in
            let late = await #expect(throws: ProviderError.self) { _ = try await client.send(BinaryPeer.request(0)) }
            #expect(late?.code == .timedOut)
        }
        try await peer.close()
    }

    @Test func `two with the same identifier are written one after the other`() async throws {
        let peer = try await BinaryPeer()
        try await withBinaryClient(try peer.configuration()) { client in
            let answers = try await withThrowingTaskGroup(of: BinaryAnswer.self) { group in
                for number in 0..<3 {
                    group.addTask {
                        var request = BinaryPeer.request(number)
                        request.identifier = 7
                        return try await client.send(request)
                    }
                }
                return try await group.reduce(into: []) { $0.append($1) }
            }
            #expect(answers == [.accepted, .accepted, .accepted])
        }
        let sevens = peer.seen.frames.filter { $0.identifier == 7 && !$0.isCheckpoint }
        #expect(sevens.count == 3 && Set(sevens.map(\.connection)).count == 3)
        try await peer.close()
    }

    @Test func `a request that the interface cannot carry is not sent`() async throws {
        let peer = try await BinaryPeer()
        try await withBinaryClient(try peer.configuration()) { client in
            var long = BinaryPeer.request(0)
            long.payload = [UInt8](repeating: 0x20, count: 2049)
            var low = BinaryPeer.request(0)
            low.priority = .low
            for request in [long, low] {
                let error = await #expect(throws: ProviderError.self) { _ = try await client.send(request) }
                #expect(error?.code == .badRequest)
            }
        }
        #expect(peer.seen.connections == 0)
        try await peer.close()
    }
}
