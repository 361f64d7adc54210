import HeraldModel
import HeraldProvider
import Testing

@testable import HeraldRelay

@Suite struct RouteTests {
    private struct Nobody: RelaySender {
        func send(_ requests: [PushRequest], report: @escaping @Sendable (Int, SendResult) -> Void) async {}
        func shutdown() async {}
    }

    @Test(arguments: [
        (ProviderError.Code.untrusted, false, "give the service's ca.pem with `ca`"),
        (.untrusted, true, "`ca` has another authority"), (.unreachable, false, "Unreachable: no answer"),
    ])
    func `a service that is not used is told with what to do`(
        code: ProviderError.Code,
        hasAuthority: Bool,
        words: String
    ) {
        var app = RelayApp(
            name: "herald",
            topics: [],
            environment: .production,
            service: HostPort(host: "localhost", port: 1),
            credential: .certificate(pem: [])
        )
        if hasAuthority { app.authorities = [1] }
        let route = Route(app, sender: Nobody(), journal: nil, backOff: RetryBackOff())
        #expect(route.problem == nil)
        route.note(.notSent(ProviderError(code, "no answer").rowError(app)))
        #expect(route.problem?.contains(words) == true)
    }
}
