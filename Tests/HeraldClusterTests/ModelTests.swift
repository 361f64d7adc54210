import Foundation
import HeraldTesting
import Testing

/// The models in `Tests/Models`, of which spin visits every state.
@Suite struct ModelTests {
    private static let models = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .appending(path: "Models")

    /// Runs a command in a folder, and returns what it printed.
    @discardableResult
    private func run(_ arguments: [String], in folder: URL) async throws -> String {
        try await ChildProcess.run("/usr/bin/env", ["-C", folder.path] + arguments)
    }

    /// The line of spin's report that counts errors, after a search of all states.
    private func search(_ model: String, _ mutation: String) async throws -> String {
        let folder = FileManager.default.temporaryDirectory.appending(path: "herald-model-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        try await run(["spin", "-D\(mutation)", "-a", Self.models.appending(path: model).path], in: folder)
        try await run(["gcc", "-w", "-O2", "-DSAFETY", "-DCOLLAPSE", "-o", "pan", "pan.c"], in: folder)
        return try await run(["./pan", "-m100000", "-w24", "-E"], in: folder)
    }

    @Test func `no order of events loses a notification, or ends on an older one`() async throws {
        let report = try await search("mailbox.pml", "NONE")
        #expect(report.contains("errors: 0") && !report.contains("not completed"), "\(report)")
    }

    @Test(arguments: ["NO_GUARD", "OLD_RINGS", "UNKNOWN_IS_503"])
    func `the model finds each mistake`(mutation: String) async throws {
        let report = try await search("mailbox.pml", mutation)
        #expect(report.contains("errors: 1"), "\(report)")
    }

    @Test func `no order of events lets an older connection end or change what a newer one has`() async throws {
        let report = try await search("fences.pml", "NONE")
        #expect(report.contains("errors: 0") && !report.contains("not completed"), "\(report)")
    }

    @Test(arguments: ["NO_CLIENT_CHECK", "NO_CONDITION", "NO_STAMP", "NO_FENCE"])
    func `the model of the fences finds each mistake`(mutation: String) async throws {
        let report = try await search("fences.pml", mutation)
        #expect(report.contains("errors: 1"), "\(report)")
    }
}
