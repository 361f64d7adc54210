import Foundation
import HeraldTestSupport
import Testing

@testable import HeraldCommand
@testable import HeraldService

@Suite struct DataFolderTests {
    let temporary: TemporaryFolder

    init() throws {
        temporary = try TemporaryFolder()
    }

    private func complaint(_ path: String, mayCreate: Bool = true) throws -> CommandError {
        try #require(throws: CommandError.self) { try DataFolder.open(path, mayCreate: mayCreate) }
    }

    @Test func `a new folder gets its parts with their modes`() throws {
        let folder = try DataFolder.open(temporary.path + "/deep/data", mayCreate: true)
        #expect(folder.path == temporary.path + "/deep/data")
        for part in ["trust", "store", "run"] { #expect(try temporary.mode(of: "deep/data/\(part)") == 0o700) }
        #expect(try temporary.text(of: "deep/data/format") == "herald 1\n")
    }

    @Test func `an empty folder becomes a data folder`() throws {
        _ = try DataFolder.open(temporary.path, mayCreate: true)
        _ = try DataFolder.open(temporary.path, mayCreate: false)
    }

    @Test func `a missing folder is not made by a command that only looks`() throws {
        #expect(try complaint(temporary.path + "/none", mayCreate: false).message.contains("herald init"))
        #expect(!FileManager.default.fileExists(atPath: temporary.path + "/none"))
    }

    @Test func `a foreign folder is refused and left alone`() throws {
        _ = try temporary.write("mine", to: "note.txt")
        #expect(try complaint(temporary.path).message.contains("is not a data folder of Herald's"))
        #expect(try FileManager.default.contentsOfDirectory(atPath: temporary.path) == ["note.txt"])
    }

    @Test func `a file in place of the folder is refused`() throws {
        let path = try temporary.write("", to: "file")
        #expect(try complaint(path).message.contains("is not a folder"))
    }

    @Test func `a folder of a newer version is refused`() throws {
        _ = try temporary.write("herald 2\n", to: "format")
        #expect(try complaint(temporary.path).message.contains("made by a newer Herald (format 2)"))
    }

    @Test(arguments: ["", "herald", "herald x\n", "\0\0\0\0"])
    func `a damaged format file is refused`(text: String) throws {
        _ = try temporary.write(text, to: "format")
        #expect(try complaint(temporary.path).message.contains("format is damaged"))
    }

    @Test(arguments: [true, false])
    func `a folder that lost its trust after use is refused, and a backup advised first`(hasStore: Bool) throws {
        let folder = try DataFolder.open(temporary.path, mayCreate: true)
        if hasStore {
            _ = try temporary.write("rows", to: "store/herald.db")
            try folder.recordStore()
        } else {
            _ = try temporary.write("pem", to: "ca.pem")
        }
        try FileManager.default.removeItem(atPath: folder.trustPath)
        let message = try complaint(temporary.path).message
        #expect(message.contains("trust is missing") && message.contains("herald restore BACKUP --data \(folder.path)"))
        #expect(message.contains("Only without one") && message.contains("every device must then be activated again"))
        #expect(!FileManager.default.fileExists(atPath: folder.trustPath))
    }

    @Test func `a data folder without its format is refused`() throws {
        let folder = try DataFolder.open(temporary.path, mayCreate: true)
        try FileManager.default.removeItem(atPath: folder.formatPath)
        #expect(try complaint(temporary.path).message.contains("without the file `format`"))
    }

    @Test func `a path that no socket can have is refused`() throws {
        try DataFolder(path: String(repeating: "x", count: 86)).checkSocketPath()
        #expect(throws: CommandError.self) {
            try DataFolder(path: String(repeating: "x", count: 87)).checkSocketPath()
        }
    }

    @Test func `a database that lost its content is refused`() throws {
        let folder = try DataFolder.open(temporary.path, mayCreate: true)
        _ = try temporary.write("pem", to: "ca.pem")
        _ = try temporary.write("", to: "store/herald.db")
        #expect(try complaint(temporary.path).message.contains("\(folder.databasePath) is empty"))
    }

    @Test func `a database that was there and is gone is missed`() throws {
        let folder = try DataFolder.open(temporary.path, mayCreate: true)
        _ = try temporary.write("pem", to: "ca.pem")
        _ = try DataFolder.open(temporary.path, mayCreate: true)
        try folder.recordStore()
        #expect(try complaint(temporary.path).message.contains("\(folder.databasePath) is missing"))
        _ = try temporary.write("rows", to: "store/herald.db")
        _ = try DataFolder.open(temporary.path, mayCreate: true)
        #expect(try temporary.text(of: "format") == "herald 1\nstore\n")
    }

    @Test func `an interrupted first start is completed`() throws {
        _ = try temporary.write("herald 1\n", to: "format")
        let folder = try DataFolder.open(temporary.path, mayCreate: true)
        #expect(FileManager.default.fileExists(atPath: folder.trustPath))
    }

    @Test(arguments: [0o750, 0o705, 0o777])
    func `a private part that others may enter is refused`(mode: Int) throws {
        let folder = try DataFolder.open(temporary.path, mayCreate: true)
        try FileManager.default.setAttributes([.posixPermissions: mode], ofItemAtPath: folder.trustPath)
        #expect(try complaint(temporary.path).message.contains("run `chmod 700 \(folder.trustPath)`"))
    }

    @Test func `a link in place of a part is refused`() throws {
        let folder = try DataFolder.open(temporary.path, mayCreate: true)
        try FileManager.default.removeItem(atPath: folder.runPath)
        try FileManager.default.createSymbolicLink(atPath: folder.runPath, withDestinationPath: "/tmp")
        #expect(try complaint(temporary.path).message.contains("is not a folder"))
    }

    @Test func `a second service is told who holds the lock`() async throws {
        let folder = try DataFolder.open(temporary.path, mayCreate: true)
        let lock = try await FolderLock.take(folder)
        ServeRecord(pid: getpid()).write(to: folder)
        let error = try #require(await #expect(throws: CommandError.self) { try await FolderLock.take(folder) })
        #expect(error.code == .folderInUse)
        #expect(error.message.contains("process \(getpid()) is working on \(folder.path)"))
        withExtendedLifetime(lock) {}
    }

    @Test func `a service waits for a command that holds the lock`() async throws {
        let folder = try DataFolder.open(temporary.path, mayCreate: true)
        let lock = try await FolderLock.take(folder)
        async let service = FolderLock.take(folder)
        lock.release()
        _ = try await service
    }

    @Test func `the lock is free when its holder is gone`() async throws {
        let folder = try DataFolder.open(temporary.path, mayCreate: true)
        do { _ = try await FolderLock.take(folder) }
        _ = try await FolderLock.take(folder)
        #expect(try temporary.mode(of: "run/lock") == 0o600)
    }

    @Test func `a file is replaced whole and leaves no draft`() throws {
        let path = try temporary.write("old", to: "file")
        try SafeFile.write(Array("new".utf8), to: path, mode: 0o600)
        #expect(try temporary.text(of: "file") == "new")
        #expect(try temporary.mode(of: "file") == 0o600)
        #expect(try FileManager.default.contentsOfDirectory(atPath: temporary.path) == ["file"])
    }

    @Test func `a file with a key overwrites none that came after the check`() throws {
        let path = temporary.path + "/key.pem"
        try OutputFile.check(path)
        _ = try temporary.write("another", to: "key.pem")
        let error = #expect(throws: CommandError.self) {
            try OutputFile.write("-----BEGIN PRIVATE KEY-----", to: path, undo: "herald device revoke k7m2x9wqh4tb")
        }
        #expect(error?.message.contains("run `herald device revoke k7m2x9wqh4tb`") == true)
        #expect(try temporary.text(of: "key.pem") == "another")
        #expect(try FileManager.default.contentsOfDirectory(atPath: temporary.path) == ["key.pem"])
        unlink(path)
        try OutputFile.write("-----BEGIN PRIVATE KEY-----", to: path, undo: "")
        #expect(try temporary.mode(of: "key.pem") == 0o600)
    }

    @Test func `a file that is too large is not read`() throws {
        let path = try temporary.write(String(repeating: "x", count: SafeFile.maximumBytes + 1), to: "file")
        #expect(throws: CommandError.self) { try SafeFile.read(path) }
    }
}
