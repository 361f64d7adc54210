import HeraldModel

/// How bad a finding is.
package enum Severity: String, Codable, Sendable, Comparable {
    case note
    case warning
    case failure

    package static func < (left: Severity, right: Severity) -> Bool { left.rank < right.rank }

    private var rank: Int {
        switch self {
        case .note: 0
        case .warning: 1
        case .failure: 2
        }
    }
}

/// One thing that the exam says of a sender.
package struct Finding: Codable, Hashable, Sendable {
    package let severity: Severity
    package let text: String

    init(_ severity: Severity, _ text: String) {
        self.severity = severity
        self.text = text
    }
}

extension Expectation {
    /// The findings about a sender after a scenario, the worst first.
    func findings(_ evidence: Evidence) -> [Finding] {
        guard !isUntrusted else { return untrusted(evidence) }
        let all = fates(evidence) + words(evidence) + Orders.findings(evidence) + limits(evidence) + more(evidence)
        return all.sorted { $0.severity > $1.severity }
    }

    private func fates(_ evidence: Evidence) -> [Finding] {
        var findings: [Finding] = []
        let judged = evidence.pushes.map { (record: $0, verdict: evidence.verdict($0, cut)) }
        func say(
            _ verdict: Verdict,
            _ severity: Severity,
            _ words: String,
            where holds: (PushRecord) -> Bool = { _ in true }
        ) {
            let count = judged.count { $0.verdict == verdict && holds($0.record) }
            if count > 0 { findings.append(Finding(severity, "\(Counted.pushes(count, of: judged.count)) \(words)")) }
        }
        say(.lied, .failure, "called accepted, and never accepted") { $0.accepted.isEmpty }
        say(.lied, .failure, "called accepted before it was sent") { !$0.accepted.isEmpty }
        say(.lostInSilence, .failure, "lost, and the sender says nothing of them")
        say(.unanswered, .failure, "accepted, and the sender says nothing of them")
        say(.doubled, .failure, "accepted twice, though already answered")
        say(.late, .failure, "accepted too late: given up or expired before")
        say(.falseAlarm, .warning, "accepted and answered, and called failed") { $0.word?.outcome != .unknown }
        say(.falseAlarm, .warning, "accepted and answered, and called unknown") { $0.word?.outcome == .unknown }
        say(.lost, told, "not accepted")
        say(.lostAndTold, told, "not accepted, and the sender says so") { !evidence.isInDoubt($0, cut) }
        say(.lostAndTold, .note, "not accepted, and the sender says that it cannot know") {
            evidence.isInDoubt($0, cut)
        }
        say(.doubledInDoubt, .warning, "accepted twice, in doubt, and not with the same apns-id") {
            !$0.keepsIdentifier
        }
        say(.doubledInDoubt, .note, "accepted twice, in doubt, with the same apns-id", where: \.keepsIdentifier)
        if evidence.stale > 0 {
            let requests = Counted.some(evidence.stale, "request")
            findings.append(Finding(.note, "\(requests) came late, for pushes of an earlier scenario"))
        }
        return findings
    }

    /// Answers that the sender tells, and Herald did not give.
    private func words(_ evidence: Evidence) -> [Finding] {
        let mistaken = evidence.pushes.first { record in
            guard let status = record.word?.status else { return false }
            return !record.requests.isEmpty && !record.requests.contains { $0.status == status }
        }
        guard let mistaken, let said = mistaken.word?.status else { return [] }
        let given = mistaken.requests.last?.status.map { "\($0)" } ?? "nothing"
        return [Finding(.failure, "the sender says \(said) where Herald answered \(given)")]
    }

    private func limits(_ evidence: Evidence) -> [Finding] {
        var findings: [Finding] = []
        let most = evidence.pushes.map(\.requests.count).max() ?? 0
        let (total, pushes) = (evidence.requests.count + evidence.unmatched, Counted.pushes(evidence.pushes.count))
        if total > Ledger.storm {
            findings.append(Finding(.failure, "a storm: \(total) requests for \(pushes), until it was stopped"))
        } else if let requestsPerPush, most > requestsPerPush {
            let enough = requestsPerPush == 1 ? "once is enough" : "\(requestsPerPush) times are enough"
            findings.append(Finding(.failure, "one push was sent \(most) times; \(enough)"))
        }
        let used = Counted.some(evidence.connections, "connection")
        if let connections, evidence.connections > connections {
            findings.append(Finding(.failure, "\(pushes) over \(used); \(connections) are enough"))
        }
        if let extraTokens, evidence.providerTokens > max(1, evidence.connections) + extraTokens {
            findings.append(Finding(.failure, "\(evidence.providerTokens) provider tokens over \(used)"))
        }
        return findings
    }

    /// A sender that must not trust the service sends nothing, and says so.
    private func untrusted(_ evidence: Evidence) -> [Finding] {
        var findings: [Finding] = []
        let sent = evidence.requests.count + evidence.unmatched
        if sent > 0 {
            let requests = Counted.some(sent, "request")
            findings.append(Finding(.failure, "\(requests) went to a service that it must not trust"))
        }
        let lies = evidence.pushes.count { $0.word?.outcome == .accepted && $0.accepted.isEmpty }
        if lies > 0 {
            let words = Counted.pushes(lies, of: evidence.pushes.count)
            findings.append(Finding(.failure, "\(words) called accepted, and never accepted"))
        }
        let isSilent = evidence.pushes.contains { $0.word == nil } && (evidence.hasWords || !evidence.hasFailed)
        if isSilent, !evidence.answersFirst, sent == 0 {
            findings.append(Finding(.failure, "the sender does not say that it could not send"))
        }
        return findings
    }
}

extension String {
    /// At most 120 characters of it.
    var shortened: String { count > 120 ? prefix(120) + "…" : self }
}
