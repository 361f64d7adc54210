import Foundation
import HeraldTestSupport
import Testing

@testable import HeraldCommand
@testable import HeraldService

@Suite struct ServeEndTests {
    private let dead = ServeRecord(pid: .max)
    private let failed = ServeRecord(pid: .max, error: "port 2197 is taken")

    @Test func `a service that fails meanwhile ends the wait with its error`() {
        var end = ServeEnd()
        #expect(end.look(nil, waited: 0) == nil)
        #expect(end.look((record: failed, age: 0.2), waited: 1) == "the service ended: port 2197 is taken")
    }

    @Test func `an end just before counts if no other start follows it`() {
        for (former, words) in [(failed, "2197"), (dead, "without a word")] {
            var end = ServeEnd()
            #expect(end.look((record: former, age: 9), waited: 0) == nil)
            #expect(end.look((record: former, age: 13.9), waited: 4.9) == nil)
            #expect(end.look((record: former, age: 14), waited: 5)?.contains(words) == true)
            // The next start writes its own record.
            #expect(end.look((record: ServeRecord(pid: getpid()), age: 0.1), waited: 5.2) == nil)
        }
    }

    @Test func `a failure of long ago is another story`() {
        var end = ServeEnd()
        #expect(end.look((record: failed, age: 3600), waited: 5) == nil)
        #expect(end.look((record: dead, age: 3600), waited: 5) == nil)
    }

    @Test func `a service that is killed ends the wait, however old it is`() {
        var end = ServeEnd()
        #expect(end.look((record: ServeRecord(pid: getpid()), age: 3600), waited: 0) == nil)
        #expect(end.look((record: ServeRecord(pid: getpid()), age: 3600), waited: 1) == nil)
        #expect(end.look((record: dead, age: 0.1), waited: 1)?.contains("without a word") == true)
    }

    @Test func `the record is a file of the folder, and nothing without one`() throws {
        let temporary = try TemporaryFolder()
        let folder = DataFolder(path: temporary.path)
        failed.write(to: folder)
        #expect(ServeRecord.read(from: folder) == nil)
        try FileManager.default.createDirectory(atPath: folder.runPath, withIntermediateDirectories: true)
        failed.write(to: folder)
        let found = try #require(ServeRecord.read(from: folder))
        #expect(found.record == failed && found.age < 60)
        ServeRecord.remove(from: folder)
        #expect(ServeRecord.read(from: folder) == nil)
    }
}
