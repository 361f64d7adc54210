import HeraldGateway
import HeraldModel

/// Provider tokens.
enum TokenScenarios {
    static let all: [Scenario] = [
        Scenario("one-token", .required, "two batches with one provider token", by: Source.token)
            .steps(.send(30), .settle, .send(30), .settle)
            .expects(Expectation(extraTokens: 0, told: .failure)),
        Scenario(
            "aged-token",
            .required,
            "the provider token is an hour old; then the clock is right again",
            by: "Apple, Establishing a token-based connection to APNs: a token is valid for an hour"
        )
        .steps(
            .send(5),
            .settle,
            .advance(.seconds(3660)),
            .send(1),
            .settle,
            .advance(.seconds(-3660)),
            .send(10),
            .settle
        )
        .expects(Expectation(requestsPerPush: 8, extraTokens: 5, told: .note).others(than: [5])),
        Scenario("expired-once", .recommended, "ExpiredProviderToken, once", by: Source.responses)
            .steps(.drill(.refuse(.expiredProviderToken, retryAfter: nil), push: 3, first: 1), .send(10), .settle)
            .expects(Expectation(requestsPerPush: 3, extraTokens: 1, told: .note).others(than: [3])),
        Scenario("expired-always", .required, "ExpiredProviderToken, always", by: Source.token)
            .steps(.drill(.refuse(.expiredProviderToken, retryAfter: nil)), .send(10), .settle)
            .expects(Expectation(requestsPerPush: 8, extraTokens: 2, told: .note)),
        Scenario("too-many-tokens", .required, "TooManyProviderTokenUpdates", by: Source.token)
            .steps(.drill(.refuse(.tooManyProviderTokenUpdates, retryAfter: nil)), .send(5), .settle)
            .expects(Expectation(requestsPerPush: 8, extraTokens: 1, told: .note)),
        Scenario("invalid-token", .seen, "InvalidProviderToken, always", by: Source.responses)
            .steps(.drill(.refuse(.invalidProviderToken, retryAfter: nil)), .send(10), .settle)
            .expects(Expectation(requestsPerPush: 8, extraTokens: 2, told: .note)),
    ]
}
