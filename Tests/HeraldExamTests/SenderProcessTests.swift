import Foundation
import Testing

@testable import HeraldExam

@Suite struct SenderProcessTests {
    private var openDescriptors: Int {
        (try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd"))?.count ?? 0
    }

    @Test func `a sender that cannot be started leaves no descriptor open`() {
        let before = openDescriptors
        for _ in 0..<300 {
            #expect(throws: Undriven.self) {
                try SenderProcess("true", folder: "/nonexistent", environment: [:], take: { _ in }, flood: {})
            }
        }
        // Tests that run beside it open some.
        #expect(openDescriptors - before < 300)
    }
}
