import Foundation
import Testing

/// The corpora of the fuzzers: each input once, in an ordinary build.
@Suite struct CorpusTests {
    private static let folder = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "Corpus")

    @Test(arguments: FuzzTarget.all.map(\.name))
    func `every input of a corpus keeps the target's properties`(name: String) throws {
        let target = try #require(FuzzTarget.named(name))
        let folder = Self.folder.appending(path: name)
        let files = try FileManager.default.contentsOfDirectory(atPath: folder.path).sorted()
        #expect(!files.isEmpty)
        target.body([])
        for file in files {
            let bytes = Array(try Data(contentsOf: folder.appending(path: file)))
            #expect(bytes.count <= target.maximumBytes, "\(file) is longer than the fuzzer would try")
            target.body(bytes)
        }
    }

    @Test func `every corpus has a target`() throws {
        let folders = try FileManager.default.contentsOfDirectory(atPath: Self.folder.path)
        #expect(Set(folders) == Set(FuzzTarget.all.map(\.name)))
    }
}
