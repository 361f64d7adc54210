import Testing

@testable import HeraldRelay

@Suite struct RelayHealthTests {
    @Test func `a failed check is over when the database works again`() {
        let health = RelayHealth(limit: .seconds(60))
        health.checkFailure("other statements take too long")
        #expect(health.problems == ["the queue's database does not work: other statements take too long"])
        health.storeFailure("no connection")
        #expect(health.problems == ["the queue's database does not work: no connection"])
        health.storeFailure(nil)
        #expect(health.problems.isEmpty)
    }
}
