import Foundation

/// A payload of `Tests/Payloads/silent.json`, which the tests of the scanner and of the check read, too.
struct SilentPayload: Decodable {
    let silent: Bool
    let payload: String

    static let all: [SilentPayload] = {
        let file = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "../../Payloads/silent.json")
        return (try? JSONDecoder().decode([SilentPayload].self, from: Data(contentsOf: file))) ?? []
    }()
}
