import HTTPTypes
import Synchronization
import Testing

@testable import HeraldConsole

@Suite struct ConsoleDescriptionTests {
    /// Strangers may ask as often as they like.
    @Test func `the description is made for the first request only`() throws {
        let made = Made()
        let operation = AdminOperation<NoContent, Never>(.get, "things", role: .viewer, says: "The things.") { _ in
            made.count.add(1, ordering: .relaxed)
            return nil
        }
        let description = ConsoleDescription(of: [operation.row])
        #expect(made.count.load(ordering: .relaxed) == 0)
        for _ in 0..<3 { _ = try description.answer() }
        #expect(made.count.load(ordering: .relaxed) == 1)
    }

    private final class Made: Sendable {
        let count = Atomic(0)
    }
}
