/// The requests that are caught.
package enum CatchScope: Hashable, Sendable {
    case off
    case all
    /// The requests of these apps, whatever the suffix of the push type.
    case topics(Set<Topic>)
}

extension CatchScope: CustomStringConvertible {
    package var description: String {
        switch self {
        case .off: "off"
        case .all: "all"
        case .topics(let topics): topics.map(\.name).sorted().joined(separator: " ")
        }
    }
}
