/// One line of `herald doctor`.
package struct DoctorFinding: Encodable, Hashable {
    package enum Level: String, Encodable {
        case ok
        /// It works, but poorly, or it will fail soon.
        case warn
        /// It does not work, or data are in danger.
        case fail
    }

    /// The subject, in one word.
    let area: String
    package let level: Level
    let text: String
    /// The command or change that helps; nil if there is nothing to do, or if the text says it.
    let remedy: String?

    static func ok(_ area: String, _ text: String) -> DoctorFinding {
        DoctorFinding(area: area, level: .ok, text: text, remedy: nil)
    }

    static func warn(_ area: String, _ text: String, _ remedy: String) -> DoctorFinding {
        DoctorFinding(area: area, level: .warn, text: text, remedy: remedy)
    }

    static func fail(_ area: String, _ text: String, _ remedy: String) -> DoctorFinding {
        DoctorFinding(area: area, level: .fail, text: text, remedy: remedy)
    }

    /// Text of an error or of the service's health, which itself says what helps.
    static func told(_ area: String, _ level: Level, _ text: String) -> DoctorFinding {
        DoctorFinding(area: area, level: level, text: text, remedy: nil)
    }

    /// The line for people.
    package var line: String {
        let pad = { (text: String, width: Int) in
            text + String(repeating: " ", count: max(1, width - text.count))
        }
        let head = pad(level.rawValue, 6) + pad(area, 14) + LogText.escaped(text, limit: 1024, spelling: .terminal)
        return head + (remedy.map { ": " + LogText.escaped($0, limit: 1024, spelling: .terminal) } ?? "")
    }
}
