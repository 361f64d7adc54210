import Testing

@testable import HeraldNATS

@Suite struct ServerPoolTests {
    private func pool(_ servers: String...) throws -> ServerPool {
        ServerPool(try servers.map { try NATSServerAddress($0) }, limits: NATSLimits())
    }

    /// The steps as text: ports, and milliseconds of pauses.
    private func steps(_ pool: inout ServerPool, _ count: Int, random: Double = 0) -> [String] {
        (0..<count).map { _ in
            switch pool.next(random: { random }) {
            case .connect(let server): "\(server.address.port)"
            case .pause(let time): "\(Int(time / .milliseconds(1))) ms"
            }
        }
    }

    @Test func `a round tries every server; pauses between rounds double up to the longest`() throws {
        var pool = try pool("a:1", "b:2", "c:3")
        let first = steps(&pool, 3)
        #expect(Set(first) == ["1", "2", "3"])
        var pauses: [String] = []
        for _ in 0..<7 {
            pauses += steps(&pool, 1)
            let round = steps(&pool, 3)
            #expect(Set(round) == ["1", "2", "3"])
        }
        #expect(pauses == ["50 ms", "100 ms", "200 ms", "400 ms", "800 ms", "1600 ms", "2000 ms"])
        let steps1 = steps(&pool, 1, random: 0.5)
        #expect(steps1 == ["1500 ms"])
    }

    @Test func `after a connection that lasted the others come first, at once; after a short one the round goes on`()
        throws
    {
        var pool = try pool("a:1", "b:2", "c:3")
        guard case .connect(let server) = pool.next(random: { 0 }) else {
            Issue.record("no server")
            return
        }
        pool.connected(to: server)
        pool.disconnected(wasStable: true)
        let steps2 = steps(&pool, 3)
        #expect(steps2.last == "\(server.address.port)")
        pool.connected(to: server)
        pool.disconnected(wasStable: false)
        let steps3 = steps(&pool, 1)
        #expect(steps3 == ["50 ms"])
    }

    @Test func `announced servers are tried too, with the name that certificates have, and no more than the limit`()
        throws
    {
        var pool = try pool("tls://nats.example:1")
        guard case .connect(let server) = pool.next(random: { 0 }) else {
            Issue.record("no server")
            return
        }
        pool.announce(
            ["nats.example:1", "10.0.0.1:2", "10.0.0.1:2", "[::1]:3", "other.example:4", "x y", ""],
            by: server
        )
        #expect(pool.count == 4)
        pool.disconnected(wasStable: true)
        var names: [Int: String?] = [:]
        for _ in 0..<4 {
            guard case .connect(let next) = pool.next(random: { 0 }) else { continue }
            #expect(next.address.requiresTLS)
            names[next.address.port] = next.tlsName
        }
        #expect(names == [1: nil, 2: "nats.example", 3: "nats.example", 4: nil])
        pool.announce((0..<100).map { "h\($0):1" }, by: server)
        #expect(pool.count == 1 + NATSLimits().announcedServers)
    }

    @Test func `addresses are read in three spellings, and others are refused with the reason`() throws {
        for (text, spelled) in [
            ("nats://a:1", "nats://a:1"), ("a", "nats://a:4222"), ("TLS://a.b/", "tls://a.b:4222"),
            ("[::1]:5", "nats://[::1]:5"), ("nats://[::1]", "nats://[::1]:4222"),
        ] {
            #expect(try NATSServerAddress(text).description == spelled)
        }
        for text in [
            "", "http://a", "nats://", "a:0", "a:65536", "a:x", "::1", "[::1", "u:p@a:1", "a b", "a/b", "a?token=x",
            "a#x", "a:+1", "[[]", "[[::1]", "[a]", "a]", "[]",
        ] {
            let error = #expect(throws: NATSError.self) { try NATSServerAddress(text) }
            #expect(error?.kind == .badSetting)
        }
    }
}
