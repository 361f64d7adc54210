import HeraldGateway
import HeraldModel

/// Refusals.
enum RefusalScenarios {
    static let all: [Scenario] = [
        Scenario("unregistered", .required, "410 Unregistered for one device", by: Source.responses)
            .steps(.drill(.refuse(.unregistered, retryAfter: nil), push: 2), .send(5), .settle)
            .expects(.refusedForGood(push: 2, status: 410)),
        Scenario("bad-device-token", .seen, "400 BadDeviceToken for one device", by: Source.responses)
            .steps(.drill(.refuse(.badDeviceToken, retryAfter: nil), push: 2), .send(5), .settle)
            .expects(.refusedForGood(push: 2, status: 400)),
        Scenario("one-device-429", .required, "429 TooManyRequests for one device", by: Source.responses)
            .steps(.drill(.refuse(.tooManyRequests, retryAfter: nil), push: 2), .send(20), .settle)
            .expects(Expectation(requestsPerPush: 8, told: .note).others(than: [2])),
        Scenario("busy-retry-after", .required, "503 with retry-after: 2, three times", by: Source.retryAfter)
            .steps(.drill(.refuse(.serviceUnavailable, retryAfter: .seconds(2)), first: 3), .send(10), .settle)
            .expects(
                Expectation(requestsPerPush: 6).and { evidence in
                    let early = evidence.pushes.count { record in
                        zip(record.requests, record.requests.dropFirst())
                            .contains { $0.status == 503 && $1.time - $0.time < .milliseconds(1900) }
                    }
                    let words =
                        "\(Counted.pushes(early, of: evidence.pushes.count)) repeated before the time of retry-after"
                    return early == 0 ? [] : [Finding(.warning, words)]
                }
            ),
        Scenario("busy", .recommended, "503 without retry-after, three times", by: Source.responses)
            .steps(
                .drill(.refuseAs(status: 503, reason: "ServiceUnavailable", retryAfter: nil), first: 3),
                .send(10),
                .settle
            )
            .expects(Expectation(requestsPerPush: 6)),
        Scenario("broken", .seen, "500 for everything", by: Source.field)
            .steps(.drill(.refuse(.internalServerError, retryAfter: nil)), .send(5), .settle)
            .expects(Expectation(requestsPerPush: 10, told: .note)),
        Scenario("unknown-reason", .seen, "a reason that no document knows", by: Source.field)
            .steps(
                .drill(.refuseAs(status: 400, reason: "ReasonOfTomorrow", retryAfter: nil), push: 1),
                .send(5),
                .settle
            )
            .expects(Expectation(requestsPerPush: 8, told: .note).others(than: [1])),
        Scenario("no-body", .seen, "a refusal without a body", by: Source.field)
            .steps(.drill(.refuseAs(status: 403, reason: nil, retryAfter: nil), push: 1), .send(5), .settle)
            .expects(Expectation(requestsPerPush: 8, told: .note).others(than: [1])),
    ]
}
