import HeraldModel
import Testing

@testable import HeraldProvider

@Suite struct PushAnswerTests {
    private func answer(_ status: Int, _ fields: [String: String] = [:], _ body: String = "") throws -> PushAnswer {
        try PushAnswer(status: status, field: { fields[$0] }, body: Array(body.utf8))
    }

    @Test func `a success has its identifiers`() throws {
        let fields = ["apns-id": "A", "apns-unique-id": "b", "herald-explanation": "stored"]
        #expect(try answer(200, fields) == .accepted(PushReceipt(id: "A", uniqueID: "b", explanation: "stored")))
    }

    @Test(arguments: RefusalReason.allCases)
    func `every documented reason is known`(refusalReason: RefusalReason) throws {
        let read = try answer(refusalReason.httpStatus, ["apns-id": "A"], #"{"reason":"\#(refusalReason.reason)"}"#)
        guard case .refused(let refusal) = read else {
            Issue.record("not a refusal: \(read)")
            return
        }
        #expect(refusal.reason.known == refusalReason)
        #expect(refusal.status == refusalReason.httpStatus)
        #expect(!refusalReason.explanation.isEmpty && !refusalReason.explanation.hasSuffix("."))
    }

    @Test func `an unknown reason is kept as it came`() throws {
        guard case .refused(let refusal) = try answer(499, [:], #"{"reason":"TooCold","more":1}"#) else {
            Issue.record("not a refusal")
            return
        }
        #expect(refusal.reason.text == "TooCold")
        #expect(refusal.reason.known == nil)
        #expect(refusal.id == nil)
    }

    @Test func `a dead token says since when`() throws {
        let body = #"{"reason":"Unregistered","timestamp":1454948015990,"explanation":"the app was removed"}"#
        guard case .refused(let refusal) = try answer(410, ["apns-id": "A"], body) else {
            Issue.record("not a refusal")
            return
        }
        #expect(refusal.since == WallTime(milliseconds: 1_454_948_015_990))
        #expect(refusal.explanation == "the app was removed")
    }

    @Test(arguments: ["\"1454948015990\"", "1.5", "null", "[]"])
    func `an unreadable timestamp does not hide the reason`(time: String) throws {
        let body = #"{"reason":"Unregistered","timestamp":\#(time),"explanation":1}"#
        guard case .refused(let refusal) = try answer(410, ["apns-id": "A"], body) else {
            Issue.record("not a refusal")
            return
        }
        #expect(refusal.reason.known == .unregistered)
        #expect(refusal.since == nil && refusal.explanation == nil)
    }

    @Test(arguments: [("30", Duration.seconds(30)), ("-1", .zero), ("soon", nil), (nil, nil)])
    func `reads retry-after`(text: String?, pause: Duration?) throws {
        let fields = ["apns-id": "A", "retry-after": text].compactMapValues { $0 }
        guard case .refused(let refusal) = try answer(429, fields, #"{"reason":"TooManyRequests"}"#) else {
            Issue.record("not a refusal")
            return
        }
        #expect(refusal.retryAfter == pause)
    }

    @Test(arguments: ["", "{}", "[", "<html>", #"{"reason":1}"#])
    func `a refusal without a reason needs an identifier`(body: String) throws {
        guard case .refused(let refusal) = try answer(500, ["apns-id": "A"], body) else {
            Issue.record("not a refusal")
            return
        }
        #expect(refusal.reason.description == "no reason given")
    }

    /// Whoever stands before a service may have passed the request on before it failed itself.
    @Test(arguments: [
        (200, "", true), (404, "<html>", false), (301, "", false), (500, "{}", true), (502, "", true), (0, "", false),
    ])
    func `an answer that is not from a push service is an error`(status: Int, body: String, mayHaveArrived: Bool) {
        let error = #expect(throws: ProviderError.self) { try answer(status, [:], body) }
        #expect(error?.code == .badAnswer && error?.mayHaveArrived == mayHaveArrived)
    }
}
