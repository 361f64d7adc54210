/// Tokens, payloads and header fields as the sender writes them.
enum ContentScenarios {
    static let all: [Scenario] = [
        Scenario(
            "long-device-tokens",
            .required,
            "device tokens of 100 bytes",
            by: "Apple, Registering your app with APNs: the size of device tokens may change"
        )
        .steps(.send(2, PushShape(tokenBytes: 100)), .settle)
        .expects(
            Expectation(requestsPerPush: 1, told: .note).and { evidence in
                let unsent = evidence.pushes.count { $0.requests.isEmpty }
                let words = "\(Counted.pushes(unsent, of: evidence.pushes.count)) not sent to its longer device token"
                return unsent == 0 ? [] : [Finding(.failure, words)]
            }
        ),
        Scenario("largest-payload", .required, "a payload of 4,096 bytes", by: Source.headers)
            .steps(.send(1, PushShape(bytes: 4096)), .settle)
            .expects(
                Expectation(told: .note).and { evidence in
                    guard let record = evidence.pushes.first, record.accepted.isEmpty else { return [] }
                    guard let sent = record.requests.first?.payload.count, sent > 4096 else {
                        return [Finding(.failure, "the largest payload was not sent")]
                    }
                    return [
                        Finding(.warning, "the sender writes \(sent) bytes for a payload of 4,096, which is too large")
                    ]
                }
            ),
        Scenario("too-large-payload", .required, "a payload of 4,097 bytes", by: Source.headers)
            .steps(.send(1, PushShape(bytes: 4097)), .settle)
            .expects(Expectation(requestsPerPush: 1, told: .note)),
        Scenario("expiration", .seen, "an expiration in an hour", by: Source.headers)
            .steps(.send(2, PushShape(expiration: .seconds(3600))), .settle)
            .expects(Expectation(told: .failure)),
        Scenario("past-expiration", .seen, "an expiration that has passed", by: Source.headers)
            .steps(.send(2, PushShape(expiration: .seconds(-3600))), .settle)
            .expects(Expectation(told: .note)),
        Scenario("collapse", .recommended, "a collapse identifier", by: Source.headers)
            .steps(.send(2, PushShape(collapseID: "score")), .settle)
            .expects(Expectation(told: .failure)),
        Scenario("background", .required, "background pushes of priority 5", by: Source.headers)
            .steps(.send(2, PushShape(pushType: "background", priority: 5)), .settle)
            .expects(Expectation(told: .failure)),
    ]
}
