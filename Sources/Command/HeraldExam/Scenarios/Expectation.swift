/// The rules of one scenario, beside those of all of them.
struct Expectation: Sendable {
    /// The most requests for one push.
    var requestsPerPush: Int?
    /// The most connections with requests.
    var connections: Int?
    /// The most provider tokens, beyond one for each connection.
    var extraTokens: Int?
    /// The severity of a push that was not accepted, and of which the sender says so.
    var told = Severity.warning
    /// The connections that are cut, so that answers may be lost on their way.
    var cut: Cut?
    /// Whether the sender must send no request at all.
    var isUntrusted = false
    var more: @Sendable (Evidence) -> [Finding] = { _ in [] }
}

extension Expectation {
    /// Adds what is said of the pushes other than some: each must be accepted.
    func others(than exempt: Set<Int>) -> Expectation {
        and { evidence in
            let lost = evidence.pushes.count { !exempt.contains($0.push.number) && $0.accepted.isEmpty }
            let words = lost == 1 ? "1 other push was not accepted" : "\(lost) other pushes were not accepted"
            return lost == 0 ? [] : [Finding(.failure, words)]
        }
    }

    func and(_ rule: @escaping @Sendable (Evidence) -> [Finding]) -> Expectation {
        var expectation = self
        let former = more
        expectation.more = { former($0) + rule($0) }
        return expectation
    }

    /// A refusal that the sender must take as final.
    static func refusedForGood(push: Int, status: Int) -> Expectation {
        Expectation(told: .note)
            .others(than: [push])
            .and { evidence in
                let record = evidence.pushes[push]
                var findings: [Finding] = []
                if record.requests.count > 1 {
                    findings.append(
                        Finding(.failure, "the refused push was sent \(record.requests.count) times; its token is dead")
                    )
                }
                if evidence.hasWords, let word = record.word,
                    word.outcome != .refused || word.status.map({ $0 != status }) ?? false
                {
                    let words = word.status.map { "\(word.outcome.rawValue), status \($0)" } ?? word.outcome.rawValue
                    findings.append(
                        Finding(.warning, "the sender says \(words) of a push that was refused with \(status)")
                    )
                }
                return findings
            }
    }
}
