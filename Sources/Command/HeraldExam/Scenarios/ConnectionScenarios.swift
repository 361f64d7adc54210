import HeraldGateway

/// Connections, streams, and how they end.
enum ConnectionScenarios {
    static let all: [Scenario] = [
        Scenario("reuse", .required, "60 pushes at once", by: Source.connection)
            .steps(.send(60), .settle)
            .expects(Expectation(connections: 10, told: .failure)),
        Scenario("goaway", .required, "GOAWAY in mid-batch", by: Source.goAway)
            .steps(.drill(.goAway(nil), push: 20, first: 1), .send(60), .settle)
            .expects(Expectation(requestsPerPush: 4)),
        Scenario("goaway-two-step", .required, "GOAWAY in two steps, in mid-batch", by: Source.goAway)
            .steps(.drill(.goAway(nil, isTwoStep: true), push: 20, first: 1), .send(60), .settle)
            .expects(Expectation(requestsPerPush: 4)),
        Scenario("shutdown", .recommended, "503 Shutdown and GOAWAY in mid-batch", by: Source.responses)
            .steps(.drill(.shutdown, push: 20, first: 1), .send(60), .settle)
            .expects(Expectation(requestsPerPush: 5)),
        Scenario("reset", .seen, "one stream is reset", by: Source.field)
            .steps(.drill(.reset(isAccepted: false), push: 5, first: 1), .send(20), .settle)
            .expects(Expectation(requestsPerPush: 4).others(than: [5])),
        Scenario("close", .seen, "the connection is closed without notice, in mid-batch", by: Source.field)
            .steps(.drill(.drop, push: 10, first: 1), .send(30), .settle)
            .expects(Expectation(requestsPerPush: 4, cut: .connection(ofPush: 10))),
        Scenario("restart", .seen, "the service restarts in mid-batch; then another batch", by: Source.field)
            .steps(.send(30), .requests(5), .restart, .settle, .send(10), .settle)
            .expects(Expectation(cut: .service).others(than: Set(0..<30))),
        Scenario("silent-stream", .seen, "one push is never answered", by: Source.field)
            .steps(.drill(.silence(isAccepted: false), push: 3, first: 1), .send(10), .settle)
            .expects(Expectation(requestsPerPush: 4, told: .note).others(than: [3])),
        Scenario("silent-accepted", .seen, "one push is accepted and never answered", by: Source.field)
            .steps(.drill(.silence(isAccepted: true), push: 3, first: 1), .send(10), .settle)
            .expects(Expectation(requestsPerPush: 4, told: .note).others(than: [3])),
        Scenario("silent-connection", .seen, "nothing is answered; then another batch", by: Source.field)
            .steps(.drill(.silence(isAccepted: false)), .send(5), .settle, .endDrills, .send(5), .settle)
            .expects(Expectation(told: .note).others(than: Set(0..<5))),
        Scenario("slow", .seen, "each answer takes three seconds", by: Source.field)
            .steps(.drill(.latency(.seconds(3) ... .seconds(3))), .send(20), .settle)
            .expects(Expectation(requestsPerPush: 3)),
        Scenario("one-stream", .required, "one concurrent stream is allowed", by: Source.streams)
            .steps(.drill(.streams(1, period: nil)), .send(20), .settle)
            .expects(Expectation(requestsPerPush: 3, told: .failure)),
        Scenario("changing-streams", .required, "the limit of streams falls to one and rises again", by: Source.streams)
            .steps(
                .drill(.latency(.milliseconds(200) ... .milliseconds(200))),
                .send(20),
                .requests(10),
                .drill(.streams(1, period: .seconds(2))),
                .send(20),
                .settle
            )
            .expects(Expectation(requestsPerPush: 3, told: .failure)),
        Scenario("refused-streams", .required, "three streams are refused", by: Source.refusedStream)
            .steps(.drill(.refuseStream, first: 3), .send(20), .settle)
            .expects(Expectation(requestsPerPush: 5)),
        Scenario(
            "foreign-authority",
            .required,
            "the service's certificate is of an unknown authority",
            by: Source.authority
        )
        .steps(.impersonate(.foreignAuthority), .send(3), .settle)
        .expects(Expectation(isUntrusted: true)),
        Scenario("foreign-name", .required, "the service's certificate is for another name", by: Source.authority)
            .steps(.impersonate(.foreignName), .send(3), .settle)
            .expects(Expectation(isUntrusted: true)),
    ]
}
