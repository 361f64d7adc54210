import HeraldCluster
import Testing

/// The routes between NATS servers.
@Suite struct RouteCheckTests {
    private func server(_ name: String, _ reached: String...) -> ServerRoutes {
        ServerRoutes(name: name, reached: Set(reached))
    }

    @Test func `servers that all reach each other have no fault`() {
        let servers = [server("a", "b", "c"), server("b", "a", "c"), server("c", "a", "b")]
        #expect(RouteCheck.findings(servers).isEmpty)
        #expect(RouteCheck.findings([server("alone")]).isEmpty)
    }

    @Test func `a pair without a route is named once, also if one of the two still believes in it`() {
        let servers = [server("c", "a"), server("a", "b", "c"), server("b", "a", "c")]
        let findings = RouteCheck.findings(servers)
        #expect(findings.count == 1)
        #expect(findings.first?.text.contains("b and c do not reach each other") == true)
    }

    @Test func `a server that no other one reaches is named alone`() {
        let findings = RouteCheck.findings([server("a"), server("b", "c"), server("c", "b", "a")])
        #expect(findings.count == 1 && findings.first?.text.contains("nats-server a is alone") == true)
        // Of two, nobody can say which one.
        #expect(RouteCheck.findings([server("a"), server("b")]).first?.text.contains("a and b do not reach") == true)
    }

    @Test func `a server that does not answer is not a fault of the others' routes`() {
        #expect(RouteCheck.findings([server("a", "b"), server("b", "a")]).isEmpty)
    }

    @Test func `the routes are read from a server's answer`() throws {
        let body = """
            {"server_name": "n1", "num_routes": 3, "routes": [
              {"rid": 8, "remote_id": "NB", "remote_name": "n2"}, {"rid": 9, "remote_id": "NB", "remote_name": "n2"},
              {"rid": 10, "remote_id": "NC"}]}
            """
        #expect(try ServerRoutes(routez: Array(body.utf8)) == server("n1", "n2"))
        #expect(try ServerRoutes(routez: Array(#"{"server_name":"n1"}"#.utf8)) == server("n1"))
        #expect(throws: (any Error).self) { try ServerRoutes(routez: Array("<html>".utf8)) }
    }
}
