package import Foundation
import HeraldModel

/// The results of an exam.
package struct ExamReport: Codable, Sendable {
    package let sender: String
    /// How it was driven, in words.
    package let driven: String
    /// Herald's version.
    package let herald: String
    /// RFC 3339.
    package let date: String
    package let seconds: Double
    package var results: [ScenarioResult]

    package func count(_ outcome: ScenarioResult.Outcome) -> Int { results.count { $0.outcome == outcome } }

    package func count(_ verdict: Verdict) -> Int {
        results.reduce(0) { $0 + ($1.verdicts[verdict.rawValue] ?? 0) }
    }

    /// Whether not one push came.
    package var isEmpty: Bool { results.allSatisfy { $0.requests == 0 } }

    /// Whether a scenario failed that a document requires, or the sender lied.
    package var hasFailed: Bool {
        results.contains { $0.level == .required && $0.outcome.isFailure } || count(.lied) > 0
    }

    /// The scenarios whose outcome is worse than in an earlier report, or in which the sender lies more often.
    package func worse(than baseline: ExamReport) -> [ScenarioResult] {
        let former = Dictionary(baseline.results.map { ($0.id, $0) }) { first, _ in first }
        return results.filter { result in
            guard let earlier = former[result.id] else { return false }
            return result.outcome.rank > earlier.outcome.rank || result.lies > earlier.lies
        }
    }
}

/// The result of a scenario.
package struct ScenarioResult: Codable, Sendable {
    package enum Outcome: String, Codable, CaseIterable, Sendable {
        case passed
        case warned
        case failed
        /// The sender could not be driven.
        case notDriven = "could not be driven"
        /// The sender cannot do what the scenario needs.
        case unsupported
        /// The way in which the sender is driven cannot show it.
        case notApplicable = "not applicable"

        package var isFailure: Bool { self == .failed || self == .notDriven }

        var rank: Int {
            switch self {
            case .passed, .notApplicable: 0
            case .warned, .unsupported: 1
            case .failed, .notDriven: 2
            }
        }
    }

    /// A push that was not simply accepted once.
    package struct Push: Codable, Sendable {
        package let id: Int
        package let verdict: Verdict
        /// The first requests for it.
        package let requests: [Request]
        /// Further ones.
        package let others: Int
        /// The sender's word.
        package let word: String
    }

    /// A request for a push.
    package struct Request: Codable, Sendable {
        /// Seconds since the first request of the scenario, by the service's clock.
        package let at: Double
        /// The connection, in the order of their first requests.
        package let connection: Int
        package let apnsID: String?
        package let isAccepted: Bool
        /// The status of the answer; absent without one.
        package let status: Int?
        package let reason: String?

        enum CodingKeys: String, CodingKey {
            case at, connection, status, reason
            case apnsID = "apns_id"
            case isAccepted = "accepted"
        }
    }

    package let id: String
    package let level: Scenario.Level
    package let title: String
    package let source: String
    package let outcome: Outcome
    package let findings: [Finding]
    package var seconds = 0.0
    package var asked = 0
    package var requests = 0
    package var connections = 0
    /// Provider tokens.
    package var tokens = 0
    /// How many pushes have each verdict.
    package var verdicts: [String: Int] = [:]
    package var pushes: [Push] = []
    /// The last lines of the sender's standard error.
    package var complaints: [String] = []

    init(_ scenario: Scenario, _ outcome: Outcome, _ words: String) {
        (id, level, title, source) = (scenario.id, scenario.level, scenario.title, scenario.source)
        self.outcome = outcome
        findings = [Finding(.note, words)]
    }

    init(_ scenario: Scenario, _ ledger: Ledger, complaints: [String]) {
        let evidence = ledger.evidence
        (id, level, title, source) = (scenario.id, scenario.level, scenario.title, scenario.source)
        if let fault = ledger.fault {
            outcome = fault.isUnsupported ? .unsupported : .notDriven
            findings = [Finding(fault.isUnsupported ? .note : .failure, "\(fault)")]
        } else {
            findings = scenario.expectation.findings(evidence)
            switch findings.map(\.severity).max() {
            case .failure: outcome = .failed
            case .warning: outcome = .warned
            case .note, nil: outcome = .passed
            }
        }
        self.complaints = outcome.isFailure ? complaints : []
        asked = evidence.pushes.count
        requests = evidence.requests.count + evidence.unmatched
        connections = evidence.connections
        tokens = evidence.providerTokens
        guard !scenario.expectation.isUntrusted, ledger.fault == nil else { return }
        let origin = RequestOrigin(evidence)
        for record in evidence.pushes {
            let verdict = evidence.verdict(record, scenario.expectation.cut)
            verdicts[verdict.rawValue, default: 0] += 1
            if verdict != .once { pushes.append(Push(record, verdict, origin)) }
        }
    }

    var lies: Int { verdicts[Verdict.lied.rawValue] ?? 0 }
}

/// The origin of the times, and the numbers of the connections, of requests.
private struct RequestOrigin {
    private let start: WallTime?
    private var connections: [ObjectIdentifier: Int] = [:]

    init(_ evidence: Evidence) {
        let requests = evidence.requests.sorted { $0.time < $1.time }
        start = requests.first?.time
        for request in requests where connections[request.connection] == nil {
            connections[request.connection] = connections.count + 1
        }
    }

    func report(_ request: ExamRequest) -> ScenarioResult.Request {
        ScenarioResult.Request(
            at: start.map { ((request.time - $0) / .milliseconds(1)).rounded() / 1000 } ?? 0,
            connection: connections[request.connection] ?? 0,
            apnsID: request.apnsID?.shortened,
            isAccepted: request.isAccepted,
            status: request.status,
            reason: request.reason
        )
    }
}

extension ScenarioResult.Push {
    /// The most requests that are listed.
    private static let most = 10

    fileprivate init(_ record: PushRecord, _ verdict: Verdict, _ origin: RequestOrigin) {
        id = record.push.number
        self.verdict = verdict
        requests = record.requests.prefix(Self.most).map(origin.report)
        others = record.requests.count - requests.count
        let said = record.word.map { word in
            [word.outcome.rawValue, word.status.map { "\($0)" }, word.reason?.shortened].compactMap(\.self)
        }
        word = said?.joined(separator: " ") ?? "none"
    }
}

extension ScenarioResult.Request {
    /// `200`, `503 Shutdown`, `accepted, no answer`, `no answer`.
    var answer: String {
        guard let status else { return isAccepted ? "accepted, no answer" : "no answer" }
        return "\(status)" + (reason.map { " \($0)" } ?? "")
    }
}

extension ExamReport {
    /// The report in JSON.
    package func json() throws -> String {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
        return String(decoding: try encoder.encode(self), as: UTF8.self) + "\n"
    }

    /// Reads a report in JSON.
    package init(json: Data) throws {
        self = try JSONDecoder().decode(ExamReport.self, from: json)
    }
}
