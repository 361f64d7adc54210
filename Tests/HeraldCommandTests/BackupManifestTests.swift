import Foundation
import Testing

@testable import HeraldCommand
@testable import HeraldService

@Suite struct BackupManifestTests {
    private static let files = [
        BackupManifest.File(path: "trust/token.keys", size: 12, sha256: "ab"),
        BackupManifest.File(path: "ca.pem", size: 3, sha256: "cd"),
    ]

    private func manifest(
        files: [BackupManifest.File] = files,
        cluster: BackupManifest.ClusterPart? = nil
    ) throws -> BackupManifest {
        try BackupManifest(
            herald: "0.9.0",
            created: "2026-11-23T00:00:00Z",
            waiting: 7,
            devices: 2,
            cluster: cluster,
            files: files
        )
    }

    @Test func `a manifest is read as it was written, sorted by path`() throws {
        let written = try manifest()
        let read = try BackupManifest(reading: Array(try written.bytes()), at: "m")
        #expect(read == written && read.files.map(\.path) == ["ca.pem", "trust/token.keys"])
    }

    @Test func `a change of any byte is noticed`() throws {
        let bytes = Array(try manifest().bytes())
        for index in bytes.indices {
            for bit in [UInt8(1), 0x20] {
                var changed = bytes
                changed[index] ^= bit
                #expect(throws: CommandError(.folder, ""), "byte \(index)") {
                    try BackupManifest(reading: changed, at: "m")
                }
            }
        }
        #expect(throws: CommandError(.folder, "")) { try BackupManifest(reading: Array(bytes.dropLast()), at: "m") }
        #expect(throws: CommandError(.folder, "")) { try BackupManifest(reading: bytes + [10], at: "m") }
    }

    @Test func `a cluster's backup says so, and an older Herald refuses it as newer`() throws {
        for part in [BackupManifest.ClusterPart.node, .whole] {
            let node = try manifest(cluster: part)
            let read = try BackupManifest(reading: Array(try node.bytes()), at: "m")
            #expect(read == node && read.cluster == part && read.format == 2)
        }
        let service = try manifest()
        #expect(service.cluster == nil && service.format == 1)
        #expect(!String(decoding: try service.bytes(), as: UTF8.self).contains("cluster"))
    }

    @Test func `a newer format is told from damage`() throws {
        let error = #expect(throws: CommandError.self) {
            try BackupManifest(reading: Array(#"{"format":3,"new":true}"#.utf8), at: "m")
        }
        #expect(error?.message.contains("newer Herald (format 3") == true)
    }

    @Test(arguments: [
        "/etc/passwd", "../x", "trust/../x", "trust/a/b", "run/lock", "trust/", "trust/..", "store/x", "",
    ])
    func `a path outside of the backup is refused`(path: String) throws {
        let bytes = Array(try manifest(files: [.init(path: path, size: 0, sha256: "")]).bytes())
        #expect(throws: CommandError(.folder, "")) { try BackupManifest(reading: bytes, at: "m") }
    }

    @Test func `a file that is listed twice is refused`() throws {
        let bytes = Array(try manifest(files: [Self.files[0], Self.files[0]]).bytes())
        #expect(throws: CommandError(.folder, "")) { try BackupManifest(reading: bytes, at: "m") }
    }

    @Test func `only what everybody may know is readable by everybody`() {
        #expect(BackupLayout.mode("ca.pem") == 0o644 && BackupLayout.mode("trust/device.crl") == 0o644)
        for path in ["trust/token.keys", "trust/ledger.db", "store/herald.db", "trust/other"] {
            #expect(BackupLayout.mode(path) == 0o600)
        }
    }
}
