import Foundation
import Testing

/// A payload of `Tests/Payloads/silent.json`, which the tests of the scanner and of the gateway read, too.
struct SilentPayload: Decodable, CustomTestStringConvertible {
    let silent: Bool
    let payload: String
    let why: String

    var testDescription: String { payload }

    static let all: [SilentPayload] = {
        let file = URL(filePath: ExpectedPayload.folder + "/silent.json")
        return (try? JSONDecoder().decode([SilentPayload].self, from: Data(contentsOf: file))) ?? []
    }()
}
