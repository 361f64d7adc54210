import Foundation

/// The comparison of what a sender was asked for with what it sent.
enum Orders {
    /// The findings about header fields and payloads; only an adapter learns what is asked.
    static func findings(_ evidence: Evidence) -> [Finding] {
        guard evidence.hasWords else { return [] }
        var first: [String: Finding] = [:]
        for record in evidence.pushes {
            for request in record.requests {
                for (field, finding) in mistakes(request, record.push) where first[field] == nil {
                    first[field] = finding
                }
            }
        }
        return first.sorted { $0.key < $1.key }.map(\.value)
    }

    private static func mistakes(_ request: ExamRequest, _ push: ExamPush) -> [(String, Finding)] {
        var mistakes: [(String, Finding)] = []
        func check(_ field: String, _ asked: String?, default usual: String? = nil) {
            let sent = request.headers[field]
            guard sent != asked, sent != nil || usual != asked else { return }
            let words = "\(field) is \(sent?.shortened ?? "missing"), and \(asked ?? "none") was asked for"
            // With 0, APNs does not keep a push for a device that is away (Apple, Sending notification requests to APNs).
            let severity: Severity =
                field != "apns-expiration" || asked != nil ? .failure : sent == "0" ? .warning : .note
            mistakes.append((field, Finding(severity, words)))
        }
        check("apns-collapse-id", push.shape.collapseID)
        check("apns-expiration", push.expiration.map { "\($0)" })
        check("apns-priority", "\(push.shape.priority)", default: "10")
        check("apns-push-type", push.shape.pushType, default: "alert")
        if !isSame(request.payload, Array(push.payload.utf8)) {
            mistakes.append(("payload", Finding(.failure, "the payload is not what was asked for")))
        }
        return mistakes
    }

    /// Whether two payloads mean the same, whatever their spaces and the order of their members.
    private static func isSame(_ left: [UInt8], _ right: [UInt8]) -> Bool {
        func object(_ bytes: [UInt8]) -> NSDictionary? {
            var object = (try? JSONSerialization.jsonObject(with: Data(bytes))) as? [String: Any]
            // A text as `alert` is its body (Apple, Generating a remote notification).
            if var aps = object?["aps"] as? [String: Any], let body = aps["alert"] as? String {
                aps["alert"] = ["body": body]
                object?["aps"] = aps
            }
            return object.map { NSDictionary(dictionary: $0) }
        }
        return left == right || object(left).map { $0 == object(right) } ?? false
    }
}
