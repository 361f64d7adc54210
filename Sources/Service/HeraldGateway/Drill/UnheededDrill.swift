/// A drill that a payload asks for where payloads may not have any.
///
/// The notification is delivered all the same, because a production payload must not break. But a test that asks for a failure
/// must not pass without one, so answer and journal say it.
enum UnheededDrill {
    /// The words of an answer.
    static let words = "; the payload's herald.drill has no effect: the service has payload drills off (payload-drills)"

    /// The words about a caught notification of the binary interface.
    static let wordsOfBinary = "; the payload's herald.drill has no effect: the binary interface has no drills"

    /// Whether a payload that is a JSON object asks for a drill, well-formed or not.
    static func isIn(_ payload: [UInt8]) -> Bool {
        HeraldMember.read(payload).map(HeraldMember.asksForDrill) ?? false
    }
}
