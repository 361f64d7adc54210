import HeraldModel
import HeraldPhone
import HeraldService

/// The report of `herald check` for people: the answer, the findings, and the languages side by side.
enum CheckText {
    /// The number of languages side by side, and the width of each in terminal columns.
    static let columns = 3
    static let width = 34
    /// The longest text, in bytes.
    static let longestText = 1024

    static func lines(_ report: CheckReport) -> [String] {
        let check = report.check
        let answer = check.refusal.map { "refused, \($0.httpStatus) \($0.reason)" } ?? "accepted"
        var lines = ["\(shown(report.name)): \(answer)"]
        lines.append("  size    \(size(check))")
        lines.append("  binary  \(binary(check))")
        if check.pushType == .alert, check.isAccepted {
            lines.append("  local   \(check.localFault.map { "refused: \(shown($0))" } ?? "accepted")")
        }
        for finding in check.findings { lines.append("\(finding.severity.rawValue): \(shown(finding.message))") }
        let groups = groups(report)
        for group in groups {
            lines += [""] + block(group, usual: groups.first?.presentations ?? [], languages: report.languages)
        }
        return lines
    }

    private static func size(_ check: PayloadCheck) -> String {
        let limit = check.pushType.maximumPayloadBytes
        let compact = check.compactSize < check.size ? ", \(check.compactSize) without white space" : ""
        return "\(check.size) of \(limit) bytes (\(check.pushType.rawValue))\(compact)"
    }

    private static func binary(_ check: PayloadCheck) -> String {
        switch check.binaryStatus {
        case 0:
            let former = check.size <= PayloadCheck.formerBytes ? "" : "; too long for devices before iOS 8 (256)"
            return "accepted, \(check.size) of \(PayloadCheck.binaryBytes) bytes\(former)"
        case 7: return "refused, status 7: more than \(PayloadCheck.binaryBytes) bytes"
        default: return "refused, status \(check.binaryStatus)"
        }
    }

    /// Groups the states in which every language shows the same.
    private static func groups(_ report: CheckReport) -> [(states: [String], presentations: [Presentation])] {
        var groups: [(states: [String], presentations: [Presentation])] = []
        let count = report.languages.count
        for start in stride(from: 0, to: report.views.count, by: count) {
            let views = report.views[start..<(start + count)]
            let presentations = views.map(\.presentation)
            let state = views.first?.state ?? ""
            if let index = groups.firstIndex(where: { $0.presentations == presentations }) {
                groups[index].states.append(state)
            } else {
                groups.append(([state], presentations))
            }
        }
        return groups
    }

    /// The lines of a group: the first group in full, the others only as far as they differ, unless they show nothing.
    private static func block(
        _ group: (states: [String], presentations: [Presentation]),
        usual: [Presentation],
        languages: [String]
    ) -> [String] {
        let isUsual = group.presentations == usual
        let isWhole = isUsual || !group.presentations.contains { $0.isShown }
        let states = group.states.joined(separator: ", ")
        let heading = group.states.count > 1 ? "the same in \(group.states.count) situations: \(states)" : states
        var lines = [heading + (isWhole ? "" : ": as in the first table, except")]
        for start in stride(from: 0, to: languages.count, by: columns) {
            let range = start..<min(start + columns, languages.count)
            let cells = range.map { facts(group.presentations[$0]) }
            let usualCells = range.map { facts(usual[$0]) }
            let labels = order.filter { label in
                isWhole
                    ? cells.contains { $0[label] != nil }
                    : zip(cells, usualCells).contains { $0[label] != $1[label] }
            }
            var table = TextTable([""] + range.map { languages[$0] })
            for label in labels {
                let wrapped = cells.map { wrap($0[label] ?? "–") }
                for row in 0..<(wrapped.map(\.count).max() ?? 0) {
                    table.add([row == 0 ? label : ""] + wrapped.map { row < $0.count ? $0[row] : "" })
                }
            }
            lines += table.lines.map { "  " + $0 }
        }
        return lines
    }

    private static let order = [
        "shown", "title", "subtitle", "body", "buttons", "slider", "actions", "badge", "sound", "opens with", "woken",
        "extension", "thread", "category", "interruption", "activity", "app", "because",
    ]

    /// The facts of a presentation, by label.
    private static func facts(_ presentation: Presentation) -> [String: String] {
        var facts: [String: String] = [:]
        facts["shown"] = presentation.isShown ? place(presentation) : "nothing"
        facts["title"] = presentation.alert?.title
        facts["subtitle"] = presentation.alert?.subtitle
        facts["body"] = presentation.alert?.body
        if !presentation.buttons.isEmpty { facts["buttons"] = bracketed(presentation.buttons) }
        facts["slider"] = presentation.slider.map { "[\($0)]" }
        if !presentation.actions.isEmpty { facts["actions"] = bracketed(presentation.actions.map(\.title)) }
        facts["badge"] = presentation.badge.map { $0 == 0 ? "removed" : String($0) }
        facts["sound"] = presentation.sound.map(sound)
        if presentation.isShown { facts["opens with"] = presentation.launchImage?.description }
        facts["woken"] = presentation.backgroundSeconds.map { "in the background, for \($0) s" }
        facts["extension"] = presentation.extensionSeconds.map { "may change it for \($0) s" }
        facts["thread"] = presentation.thread
        facts["category"] = presentation.category
        if presentation.interruption != "active" { facts["interruption"] = presentation.interruption }
        facts["activity"] = presentation.activity.map { "\($0.event): \($0.state.rawValue)" }
        if presentation.isDeliveredToApp { facts["app"] = "gets the payload" }
        if !presentation.reasons.isEmpty {
            facts["because"] = presentation.reasons.map(\.rawValue).joined(separator: "; ")
        }
        return facts
    }

    private static func place(_ presentation: Presentation) -> String {
        switch presentation.place {
        case .lockScreen: "on the locked screen"
        case .list: "in the list only"
        default: presentation.style == .alert ? "as an alert" : "as a banner"
        }
    }

    private static func bracketed(_ titles: [String]) -> String {
        titles.map { "[\($0)]" }.joined(separator: " ")
    }

    private static func sound(_ sound: Presentation.Sound) -> String {
        guard sound.isCritical else { return sound.name }
        return "\(sound.name), critical\(sound.volume.map { ", volume \($0)" } ?? "")"
    }

    /// Wraps a text to lines of at most ``width`` columns, between words if possible.
    private static func wrap(_ text: String) -> [String] {
        var lines: [String] = []
        var line = ""
        for word in shown(text).split(separator: " ", omittingEmptySubsequences: false) {
            var word = word
            if !line.isEmpty, TerminalWidth.of(line) + 1 + TerminalWidth.of(word) > width {
                lines.append(line)
                line = ""
            }
            while TerminalWidth.of(word) > width {
                let head = TerminalWidth.prefix(of: word, columns: width)
                lines.append(String(head))
                word = word[head.endIndex...]
            }
            line += line.isEmpty ? String(word) : " " + word
        }
        return lines + [line]
    }

    private static func shown(_ text: String) -> String {
        LogText.escaped(text, limit: longestText, spelling: .terminal)
    }
}
