/// Rights of a caller at the console; each role has those of the one before.
package enum ConsoleRole: String, Codable, CaseIterable, Comparable, Sendable {
    /// Sees all but payloads' secrets and keys, and changes nothing.
    case viewer
    /// Sends notifications too, and catches them.
    case sender
    case admin

    package static func < (one: ConsoleRole, other: ConsoleRole) -> Bool { one.rank < other.rank }

    private var rank: Int {
        switch self {
        case .viewer: 0
        case .sender: 1
        case .admin: 2
        }
    }
}
