import Foundation
import HeraldModel
import Testing

@testable import HeraldExam

/// Reports of an exam.
@Suite struct ReportTests {
    private func report(
        _ outcomes: [ScenarioResult.Outcome],
        words: String = "two < three & \"four\"\u{1B}"
    ) -> ExamReport {
        ExamReport(
            sender: "sender <1>",
            driven: "adapter: x",
            herald: "Herald",
            date: "2026-11-28T00:00:00Z",
            seconds: 1.5,
            results: zip(Scenario.all, outcomes).map { ScenarioResult($0, $1, words) }
        )
    }

    @Test func `identifiers are unique, and each scenario ends by waiting for the sender`() {
        #expect(Set(Scenario.all.map(\.id)).count == Scenario.all.count)
        for scenario in Scenario.all {
            guard case .settle? = scenario.steps.last else {
                Issue.record("\(scenario.id) does not wait")
                continue
            }
        }
    }

    @Test func `texts of senders are escaped in HTML and in JUnit's XML`() {
        let report = report([.failed, .warned, .passed, .unsupported])
        for text in [report.html, report.junit] {
            #expect(!text.contains("<1>") && !text.contains("two <") && !text.unicodeScalars.contains("\u{1B}"))
            #expect(text.contains("two &lt; three &amp; &quot;four&quot;"))
        }
        #expect(report.junit.contains(#"tests="4" failures="1" errors="0" skipped="1""#))
    }

    @Test func `a report in JSON is read again, and what became worse is named`() throws {
        let former = try ExamReport(json: Data(report([.passed, .failed, .warned, .failed]).json().utf8))
        let worse = report([.warned, .failed, .passed, .notDriven]).worse(than: former)
        #expect(worse.map(\.id) == [Scenario.all[0].id])
        #expect(report([.unsupported, .failed]).worse(than: former).map(\.id) == [Scenario.all[0].id])
        #expect(report([.passed]).worse(than: report([])).isEmpty)
        var liar = report([.passed])
        liar.results[0].verdicts[Verdict.lied.rawValue] = 1
        #expect(liar.worse(than: former).map(\.id) == [Scenario.all[0].id])
        #expect(throws: (any Error).self) { try ExamReport(json: Data("{}".utf8)) }
    }

    @Test func `only required scenarios make an exam fail`() {
        let required = Scenario.all.map { $0.level == .required ? ScenarioResult.Outcome.passed : .failed }
        #expect(!report(required).hasFailed)
        #expect(report(Scenario.all.map { _ in .notDriven }).hasFailed)
    }
}
