import Foundation
import HeraldModel
import Testing

/// A payload of `Tests/Payloads/silent.json`, which the tests of the gateway and of the check read, too.
struct SilentPayload: Decodable, CustomTestStringConvertible {
    let silent: Bool
    let payload: String
    let why: String

    var testDescription: String { payload }

    static let all: [SilentPayload] = {
        let file = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "../Payloads/silent.json")
        return (try? JSONDecoder().decode([SilentPayload].self, from: Data(contentsOf: file))) ?? []
    }()
}

@Suite struct SilentPayloadTests {
    @Test func `there are payloads of both kinds`() {
        #expect(SilentPayload.all.contains(where: \.silent) && SilentPayload.all.contains { !$0.silent })
    }

    @Test(arguments: SilentPayload.all) func `a payload that only wakes its app is silent`(_ vector: SilentPayload) {
        #expect(PayloadScanner.isSilent(Array(vector.payload.utf8)) == vector.silent, "\(vector.why)")
    }

    @Test(arguments: ["", "[1]", #"{"aps":{"content-available":1}"#, #"{"aps":{"content-available":1}}x"#])
    func `what is not a JSON object is not silent`(payload: String) {
        #expect(!PayloadScanner.isSilent(Array(payload.utf8)))
    }

    @Test func `an escape in an earlier key or value does not matter`() {
        let payload = #"{"\u0061":"\n","aps":{"x\\":"\"","content-available":1,"\u0062":"alert"}}"#
        #expect(PayloadScanner.isSilent(Array(payload.utf8)))
    }
}
