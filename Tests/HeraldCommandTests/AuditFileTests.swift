import Foundation
import HeraldConsole
import HeraldTestSupport
import Logging
import Testing

@testable import HeraldCommand
@testable import HeraldService

struct AuditFileTests {
    private let folder: TemporaryFolder

    init() throws { folder = try TemporaryFolder() }

    private func audit(maximumBytes: Int = 1 << 20) -> AuditFile {
        AuditFile(
            folder: folder.path,
            maximumBytes: maximumBytes,
            logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
        )
    }

    private func entry(_ action: String) throws -> AuditEntry {
        let json = #"{"id":0,"time":"2026-03-01T12:00:00.000Z","from":"socket","status":200,"action":"\#(action)"}"#
        return try JSONDecoder().decode(AuditEntry.self, from: Data(json.utf8))
    }

    @Test func `lines are read from the newest on, and numbers go on after a restart`() async throws {
        for run in 0..<2 {
            let audit = audit()
            for number in 1...3 { audit.write(try entry("\(run * 3 + number)")) }
            audit.close()
        }
        let audit = audit()
        #expect(try await audit.read(limit: 10, before: nil).map(\.id) == [6, 5, 4, 3, 2, 1])
        #expect(try await audit.read(limit: 2, before: 4).map(\.action) == ["3", "2"])
        let mode = try FileManager.default.attributesOfItem(atPath: folder.path + "/audit.jsonl")[.posixPermissions]
        #expect((mode as? NSNumber)?.intValue == 0o600)
    }

    @Test func `full files are renamed, and the oldest goes`() async throws {
        let audit = audit(maximumBytes: 400)
        for number in 1...40 { audit.write(try entry("\(number)")) }
        let found = try await audit.read(limit: 100, before: nil).map(\.id)
        #expect(found.first == 40 && found.count < 40)
        #expect(found == Array((41 - found.count...40).reversed()))
        let files = try FileManager.default.contentsOfDirectory(atPath: folder.path)
        #expect(files.count == AuditFile.maximumFiles)
    }

    @Test func `a damaged line is left out`() async throws {
        let audit = audit()
        audit.write(try entry("1"))
        audit.close()
        let path = folder.path + "/audit.jsonl"
        let text = try String(contentsOfFile: path, encoding: .utf8) + "{half\n"
        try text.write(toFile: path, atomically: false, encoding: .utf8)
        audit.write(try entry("2"))
        #expect(try await audit.read(limit: 10, before: nil).map(\.action) == ["2", "1"])
    }

    @Test func `without a folder changes go on`() async throws {
        let audit = AuditFile(
            folder: folder.path + "/none",
            logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
        )
        audit.write(try entry("1"))
        #expect(try await audit.read(limit: 10, before: nil).isEmpty)
    }
}
