import Foundation
import NIOHTTP1
import Testing

@testable import HeraldConsole

@Suite struct ConsolePagesTests {
    let harness = ConsoleHarness()
    let folder = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "../../Sources")

    @Test func `each path of a page answers the page, with a policy that permits its own files alone`() async throws {
        let answers = try await harness.withPort { base in
            var answers: [ConsoleHarness.Answer] = []
            for path in ["/", "/notifications", "/notifications/2f7ca8f4", "/devices/kitchen%20phone", "/settings"] {
                answers.append(try await harness.ask("GET", base + path))
            }
            return answers
        }
        for answer in answers {
            #expect(answer.status == 200)
            #expect(answer.body == answers.first?.body)
            #expect(answer.fields.first(name: "content-type") == "text/html; charset=utf-8")
            #expect(answer.fields.first(name: "cache-control") == "no-store")
            let policy = answer.fields.first(name: "content-security-policy") ?? ""
            #expect(policy.hasPrefix("default-src 'none'; script-src 'self'; "))
            #expect(!policy.contains("unsafe") && !policy.contains("frame-src"))
            #expect(answer.fields.first(name: "x-frame-options") == "DENY")
        }
    }

    @Test func `all files of the page are in the binary, and browsers may keep them`() async throws {
        let own = try files(in: "Service/HeraldConsole/Resources").filter { ["js", "css"].contains($0.pathExtension) }
        #expect(own.count > 20)
        let all = own + (try files(in: "Shared/HeraldWeb/Resources"))
        try await harness.withPort { base in
            let page = try await harness.ask("GET", base + "/").body
            for file in all {
                let name = file.lastPathComponent
                let answer = try await harness.ask("GET", "\(base)/assets/\(ConsoleAssets.version)/\(name)")
                #expect(answer.status == 200, "\(name)")
                #expect(try answer.body == String(contentsOf: file, encoding: .utf8), "\(name)")
                #expect(answer.fields.first(name: "cache-control") == "public, max-age=31536000, immutable")
            }
            #expect(page.contains("/assets/\(ConsoleAssets.version)/main.js"))
            let old = try await harness.ask("GET", base + "/assets/0/main.js")
            #expect(old.status == 200 && old.fields.first(name: "cache-control") == "no-store")
            #expect(try await harness.ask("GET", base + "/assets/0/..%2Findex.html").status == 404)
        }
    }

    private func files(in path: String) throws -> [URL] {
        try FileManager.default.contentsOfDirectory(at: folder.appending(path: path), includingPropertiesForKeys: nil)
    }
}
