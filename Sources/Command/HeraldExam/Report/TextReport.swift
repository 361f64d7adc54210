/// The report for a terminal.
extension ExamReport {
    /// The last lines: how many scenarios have each outcome, and what became of the pushes.
    package var summary: [String] {
        let played = results.count - count(.unsupported) - count(.notApplicable)
        var parts = ["\(count(.passed)) passed", "\(count(.warned)) warned", "\(count(.failed)) failed"]
        if count(.notDriven) > 0 { parts.append("\(count(.notDriven)) could not be driven") }
        let skipped = results.count - played
        if skipped > 0 { parts.append("\(skipped) not applicable") }
        return [
            "\(Counted.some(played, "scenario")) in \(Int(seconds.rounded())) s: " + parts.joined(separator: ", "),
            "lost in silence \(count(.lostInSilence)), lost otherwise \(count(.lostAndTold) + count(.lost)) · doubled \(count(.doubled)) (in doubt \(count(.doubledInDoubt))) · "
                + "lied \(count(.lied)) · late \(count(.late)) · false alarms \(count(.falseAlarm))",
        ]
    }
}

extension ScenarioResult {
    /// The mark of an outcome in a list.
    package var mark: String {
        switch outcome {
        case .passed: "✓"
        case .warned: "!"
        case .failed, .notDriven: "✗"
        case .unsupported, .notApplicable: "–"
        }
    }

    var facts: String {
        "\(Counted.pushes(asked)), \(Counted.some(requests, "request")), "
            + "\(Counted.some(connections, "connection")), \(Counted.some(tokens, "provider token"))"
    }

    /// The lines of a scenario: its identifier and first finding, then the others and the source of the rule.
    package var lines: [String] {
        let indent = String(repeating: " ", count: 24)
        let name = id.padding(20)
        let said = outcome == .notDriven ? findings.map { "could not be driven: \($0.text)" } : findings.map(\.text)
        var lines = ["  \(mark) \(name)\(said.first ?? facts)"]
        lines += said.dropFirst().map { indent + $0 }
        if outcome == .failed || outcome == .warned { lines.append(indent + source) }
        return lines
    }
}

extension String {
    fileprivate func padding(_ width: Int) -> String {
        self + String(repeating: " ", count: max(1, width - count))
    }
}
