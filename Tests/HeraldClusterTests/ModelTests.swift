import Foundation
import Testing

/// The models in `Tests/Models`, of which spin visits every state.
@Suite struct ModelTests {
    private struct Failure: Error {
        let output: String
    }

    private static let models = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .appending(path: "Models")

    /// Runs a command in a folder, and returns what it printed.
    private func run(_ arguments: [String], in folder: URL) throws -> String {
        let process = Process()
        let pipe = Pipe()
        process.executableURL = URL(filePath: "/usr/bin/env")
        process.arguments = arguments
        process.currentDirectoryURL = folder
        process.standardOutput = pipe
        process.standardError = pipe
        try process.run()
        let output = String(decoding: try pipe.fileHandleForReading.readToEnd() ?? Data(), as: UTF8.self)
        process.waitUntilExit()
        guard process.terminationStatus == 0 else { throw Failure(output: output) }
        return output
    }

    /// The line of spin's report that counts errors, after a search of all states.
    private func search(_ model: String, _ mutation: String) throws -> String {
        let folder = FileManager.default.temporaryDirectory.appending(path: "herald-model-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        _ = try run(["spin", "-D\(mutation)", "-a", Self.models.appending(path: model).path], in: folder)
        _ = try run(["gcc", "-w", "-O2", "-DSAFETY", "-DCOLLAPSE", "-o", "pan", "pan.c"], in: folder)
        return try run(["./pan", "-m100000", "-w24", "-E"], in: folder)
    }

    @Test func `no order of events loses a notification, or ends on an older one`() throws {
        let report = try search("mailbox.pml", "NONE")
        #expect(report.contains("errors: 0") && !report.contains("not completed"), "\(report)")
    }

    @Test(arguments: ["NO_GUARD", "OLD_RINGS", "UNKNOWN_IS_503"])
    func `the model finds each mistake`(mutation: String) throws {
        let report = try search("mailbox.pml", mutation)
        #expect(report.contains("errors: 1"), "\(report)")
    }

    @Test func `no order of events lets an older connection end or change what a newer one has`() throws {
        let report = try search("fences.pml", "NONE")
        #expect(report.contains("errors: 0") && !report.contains("not completed"), "\(report)")
    }

    @Test(arguments: ["NO_CLIENT_CHECK", "NO_CONDITION", "NO_STAMP", "NO_FENCE"])
    func `the model of the fences finds each mistake`(mutation: String) throws {
        let report = try search("fences.pml", mutation)
        #expect(report.contains("errors: 1"), "\(report)")
    }
}
