import HeraldMailbox
import HeraldModel
import Testing

@testable import HeraldConsole

/// Counts one line of the first hour, under the name of the topic, the environment and the outcome that were asked for.
struct StandInTallies: JournalCounting {
    let now = WallTime(seconds: 1_772_366_400 + 1800)

    func tallies(_ question: TallyQuestion) async throws -> TallyAnswer {
        let asked = [
            question.group.rawValue, question.topic, question.environment?.rawValue, question.outcome?.rawValue,
        ]
        let name = asked.map { $0 ?? "any" }.joined(separator: " ")
        return TallyAnswer(question, nodes: [[question.firstHour: [name: 1]]], missingNodes: [])
    }
}

struct TallyRoutesTests {
    private let harness = ConsoleHarness()

    private func ask(_ query: String) async throws -> ConsoleHarness.Answer {
        try await harness.withSocket { try await harness.ask("GET", "\($0)/v1/tallies\(query)") }
    }

    @Test func `without words the outcomes of the last day count, in whole hours`() async throws {
        let answer = try await ask("").decode(TallyAnswer.self)
        #expect(answer.from == "2026-02-28T12:00:00.000Z" && answer.to == "2026-03-01T13:00:00.000Z")
        #expect(answer.sums == ["outcome any any any": 1])
        #expect(answer.hours == [TallyAnswer.Hour(time: answer.from, counts: answer.sums)])
    }

    @Test(
        arguments: [
            ("?by=type&app=com.example.app&environment=sandbox", "type com.example.app sandbox received"),
            ("?by=priority&outcome=refused", "priority any any refused"),
            ("?by=state&from=-31d", "state any any any"),
            ("?from=2026-02-01&to=2026-02-01T00:01", "outcome any any any"),
        ]
    )
    func `words restrict what counts`(query: String, name: String) async throws {
        #expect(try await ask(query).decode(TallyAnswer.self).sums == [name: 1])
    }

    @Test(
        arguments: [
            "?by=color", "?environment=both", "?outcome=lost", "?app=a..b", "?from=yesterday", "?to=x",
            "?from=-1h&to=-2h", "?from=-32d",
        ]
    )
    func `a question that makes no sense, or is too long, is refused`(query: String) async throws {
        let answer = try await ask(query)
        #expect(answer.status == 400 && answer.body.contains("error"))
    }

    @Test func `the numbers of nodes are added up, and hours that were not asked for are left out`() {
        let question = TallyQuestion(topic: nil, environment: nil, outcome: nil, group: .outcome, hours: 5..<7)
        let nodes: [[Int64: [String: Int]]] = [
            [5: ["received": 1], 6: ["received": 2, "stored": 1]], [6: ["stored": 4], .max: ["stored": 9]],
        ]
        let answer = TallyAnswer(question, nodes: nodes, missingNodes: ["c"])
        #expect(answer.sums == ["received": 3, "stored": 5] && answer.missingNodes == ["c"])
        #expect(answer.hours.map(\.counts) == [["received": 1], ["received": 2, "stored": 5]])
        #expect(answer.hours.first?.time == "1970-01-01T05:00:00.000Z")
    }

    @Test func `a group has the name that people know`() {
        func name(_ group: TallyQuestion.Group, _ traits: JournalTraits, outcome: JournalOutcome? = nil) -> String? {
            let question = TallyQuestion(topic: nil, environment: nil, outcome: outcome, group: group, hours: 0..<1)
            let key = TallyKey(hour: 0, app: .app(AppNumber(1)), traits: traits, state: .discardedExpiredFromStorage)
            return question.name(of: key)
        }
        let known = JournalTraits(pushType: .voip, priority: .conserving)
        #expect(
            TallyQuestion.Group.allCases.map { name($0, known) }
                == ["discarded", "discarded from storage (expired)", "voip", "5"]
        )
        #expect(name(.type, .none) == "unknown" && name(.priority, .none) == "unknown")
        #expect(name(.type, known, outcome: .received) == nil)
    }
}
