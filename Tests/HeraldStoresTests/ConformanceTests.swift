import HeraldTestSupport
import Testing

struct ConformanceTests {
    @Test(arguments: [StoreEngine.memory, .sqlite], StoreConformance.rules)
    func `every engine keeps every rule`(engine: StoreEngine, rule: StoreConformance.Rule) async throws {
        try await StoreConformance.check(rule, on: engine)
    }
}
