import Foundation
import Testing

@testable import HeraldTesting

@Suite struct HeraldBinaryTests {
    @Test func `the environment names the binary`() throws {
        #expect(try HeraldBinary.find(["HERALD_BINARY": "/bin/sh"]).path == "/bin/sh")
    }

    @Test(arguments: ["/nowhere/herald", "/tmp"])
    func `a binary that is none is refused`(path: String) throws {
        let error = #expect(throws: HeraldTestError.self) { try HeraldBinary.find(["HERALD_BINARY": path]) }
        #expect(try #require(error).description.contains("HERALD_BINARY names \(path)"))
    }

    @Test(arguments: [
        ("herald 0.9.0 (3f60588, 2026-11-23)", [0, 9, 0]), ("0.1.0\n", [0, 1, 0]), ("herald 12.34.56", [12, 34, 56]),
    ])
    func `the version is read`(text: String, numbers: [Int]) {
        #expect(HeraldBinary.version(in: text) == numbers)
    }

    @Test func `another program has no version of Herald's`() async throws {
        #expect(HeraldBinary.version(in: "dash") == nil)
        await #expect(throws: HeraldTestError.self) { try await HeraldBinary(path: "/bin/true").check() }
    }
}
