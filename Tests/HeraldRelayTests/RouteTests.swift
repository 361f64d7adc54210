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
        ("Untrusted", false, "give the service's ca.pem with the setting ca"),
        ("Untrusted", true, "the setting ca has another authority"), ("Unreachable", false, "whether the service runs"),
        ("BadAnswer", true, "is not a push service"), ("TimedOut", true, "does not answer in time"),
    ])
    func `a service that is not used is told with what to do`(reason: String, hasAuthority: Bool, words: String) {
        var app = RelayApp(
            name: "herald",
            topics: [],
            environment: .production,
            service: RelayApp.Endpoint(host: "localhost", port: 1),
            credential: .certificate(pem: [])
        )
        if hasAuthority { app.authorities = [1] }
        let route = Route(app, sender: Nobody(), journal: nil, backOff: RetryBackOff())
        #expect(route.problem == nil)
        route.note(.notSent(reason), at: Words.now)
        #expect(route.problem?.contains(": \(reason): ") == true && route.problem?.contains(words) == true)
    }
}
