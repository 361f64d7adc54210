import Foundation
import HeraldJSON
import HeraldModel
import Testing

@testable import HeraldPhone

@Suite struct ExpectedPayloadTests {
    @Test func `every payload has an expectation`() throws {
        let files = try FileManager.default.contentsOfDirectory(atPath: ExpectedPayload.folder + "/files")
        #expect(ExpectedPayload.all.count == 39)
        #expect(Set(ExpectedPayload.all.compactMap { $0.expectation["file"]?.text }) == Set(files))
    }

    @Test(arguments: ExpectedPayload.all)
    func `the verdict and the findings are as expected`(expected: ExpectedPayload) throws {
        let bundle = try ExpectedPayload.monopoly()
        let check = PayloadCheck(expected.payload, pushType: expected.pushType, bundle: bundle, now: 1_800_000_000)
        #expect(check.refusal?.httpStatus ?? 200 == expected.expectation["status"]?.integer)
        #expect(check.refusal?.reason == expected.expectation["reason"]?.text)
        #expect(Int(check.binaryStatus) == expected.expectation["binary_status"]?.integer)
        for finding in expected.expectation["findings"]?.elements ?? [] {
            #expect(check.findings.contains { $0.message.contains(finding.argument) }, "\(check.findings)")
        }
        #expect(check.isAccepted != check.findings.contains { $0.severity == .error })
    }

    @Test(arguments: ExpectedPayload.all)
    func `the presentation is as expected`(expected: ExpectedPayload) throws {
        let presenter = Presenter(bundle: try ExpectedPayload.monopoly())
        for wanted in expected.expectation["present"]?.elements ?? [] {
            var situation = DeviceSituation(now: 1_800_000_000)
            let wanted = try #require(wanted.members)
            situation.languages = [try #require(wanted["language"]?.text)]
            let state = try #require(wanted["state"]?.text)
            situation.isLocked = state == "locked"
            situation.app = state == "foreground" ? .foreground : .background
            let notification = IncomingNotification(payload: expected.payload, pushType: expected.pushType)
            let shown = presenter.presentation(of: notification, in: situation)
            let json = try JSON.encode(shown)
            guard let members = JSON.Object(json) else {
                Issue.record("not JSON")
                continue
            }
            for (key, value) in wanted where key != "state" && key != "language" {
                #expect(members[key] == value, "\(key) in \(members)")
            }
        }
    }
}
