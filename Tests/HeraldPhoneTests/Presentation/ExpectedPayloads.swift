import Foundation
import HeraldJSON
import HeraldModel
import Testing

@testable import HeraldPhone

/// The payloads of `Tests/Payloads`, as described in its `README.md`.
struct ExpectedPayload: CustomTestStringConvertible {
    let name: String
    let payload: [UInt8]
    let pushType: PushType
    let expectation: JSON.Object

    var testDescription: String { name }

    static let folder = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "../../Payloads")
        .standardizedFileURL.path

    static let all: [ExpectedPayload] = {
        guard let list = read("expectations.json"),
            let wrapped = JSON.Object(Array("{\"all\":".utf8) + list + Array("}".utf8), rules: .lenient)
        else { return [] }
        return (wrapped["all"]?.elements ?? []).compactMap { value in
            guard let expectation = value.members, let name = expectation["name"]?.text,
                let payload = read("files/\(expectation["file"]?.text ?? "")"),
                let pushType = PushType(rawValue: expectation["push_type"]?.text ?? "")
            else { return nil }
            return ExpectedPayload(name: name, payload: payload, pushType: pushType, expectation: expectation)
        }
    }()

    static func monopoly() throws -> AppBundle {
        try AppBundle(folder: folder + "/Monopoly.app")
    }

    private static func read(_ name: String) -> [UInt8]? {
        FileManager.default.contents(atPath: "\(folder)/\(name)").map(Array.init)
    }
}
