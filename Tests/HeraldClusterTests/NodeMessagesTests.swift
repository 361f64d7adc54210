import Crypto
import HeraldCluster
import HeraldNATS
import HeraldTestSupport
import NIOCore
import Synchronization
import Testing

@testable import HeraldSimulation

/// Messages between nodes, in memory and on a real server.
@Suite struct NodeMessagesTests {
    private let a: NodeName
    private let b: NodeName
    private let c: NodeName

    init() throws {
        a = try #require(NodeName("a"))
        b = try #require(NodeName("b"))
        c = try #require(NodeName("c"))
    }

    @Test func `a question is over when all have answered, or when its time is over`() {
        let time = SimTime()
        let nodes = MemoryNodes(scheduler: time)
        let asking = nodes.join(a)
        for node in [b, c] {
            let exchange = nodes.join(node)
            exchange.receive(.ring) { payload, sender, reply in
                #expect(sender.text == "a")
                reply(ByteBuffer(string: "\(node.text) heard \(String(buffer: payload))"))
                // A second answer is none.
                reply(ByteBuffer(string: "again"))
            }
        }
        let answers = Mutex<[[String: String]]>([])
        func ask() {
            asking.ask(ByteBuffer(string: "x"), as: .ring, of: [b, c], within: .seconds(1)) { found in
                let texts = found.map { ($0.key.text, String(buffer: $0.value)) }
                answers.withLock { $0.append(Dictionary(uniqueKeysWithValues: texts)) }
            }
        }
        ask()
        time.pass(.milliseconds(1))
        #expect(answers.withLock { $0 } == [["b": "b heard x", "c": "c heard x"]])
        nodes.lose { [c] _, node in node == c }
        ask()
        time.pass(.milliseconds(999))
        #expect(answers.withLock { $0.count } == 1)
        time.pass(.milliseconds(1))
        #expect(answers.withLock { $0.last } == ["b": "b heard x"])
    }

    @Test func `a message to all reaches all others`() {
        let time = SimTime()
        let nodes = MemoryNodes(scheduler: time)
        let heard = Mutex<Set<String>>([])
        let all = [a, b, c].map { name in
            let exchange = nodes.join(name)
            exchange.receive(.once) { _, _, _ in heard.withLock { _ = $0.insert(name.text) } }
            return exchange
        }
        all[0].sendToAll(ByteBuffer(string: "x"), as: .once)
        time.pass(.milliseconds(1))
        #expect(heard.withLock { $0 } == ["b", "c"])
        all[0].send(ByteBuffer(string: "x"), as: .once, to: a)
        time.pass(.milliseconds(1))
        #expect(heard.withLock { $0 } == ["a", "b", "c"])
    }

    @Test func `a large answer travels over a server in parts`() async throws {
        let connection = try await NATSServer.shared.connection()
        let (seal, setAside) = (RecordSeal(SymmetricKey(size: .bits256)).of(7), SetAside())
        let asking = try NATSNodeMessages(connection, node: a, seal: seal, setAside)
        let other = try NATSNodeMessages(connection, node: b, seal: seal, setAside)
        let large = ByteBuffer(bytes: (0..<2_500_000).map { UInt8(truncatingIfNeeded: $0 >> 8) })
        other.exchange.receive(.ring) { _, _, reply in reply(large) }
        let answers = await withCheckedContinuation { continuation in
            asking.exchange.ask(ByteBuffer(), as: .ring, of: [b], within: .seconds(60)) {
                continuation.resume(returning: $0)
            }
        }
        #expect(answers == [b: large])
        let (messages, message) = AsyncStream.makeStream(of: String.self)
        other.exchange.receive(.once) { payload, sender, _ in message.yield(sender.text + String(buffer: payload)) }
        asking.exchange.receive(.once) { _, _, _ in message.yield("the sender itself") }
        asking.exchange.sendToAll(ByteBuffer(string: "1"), as: .once)
        asking.exchange.send(ByteBuffer(string: "2"), as: .once, to: b)
        var first = messages.makeAsyncIterator()
        #expect(await first.next() == "a1")
        #expect(await first.next() == "a2")
        // What another one sends, or moves from another subject, is dropped.
        #expect(setAside.warning == nil)
        for forged in [
            ByteBuffer(string: "x"), ByteBuffer(), try #require(seal.seal(ByteBuffer(), at: "hrld.node.a.once")),
        ] {
            try connection.publish(forged, to: "hrld.node.b.once")
        }
        asking.exchange.send(ByteBuffer(string: "3"), as: .once, to: b)
        #expect(await first.next() == "a3")
        #expect(try #require(setAside.warning).contains("3 records or messages were set aside"))
        #expect(try #require(setAside.warning).contains("hrld.node.b.once"))
        asking.close()
        other.close()
        await connection.close()
    }
}
