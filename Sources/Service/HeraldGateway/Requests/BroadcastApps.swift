package import HeraldModel

/// The apps with the broadcast capability.
package enum BroadcastApps: Hashable, Sendable {
    case all
    /// The apps with these bundle identifiers.
    case only(Set<Topic>)

    package func contains(_ bundle: Topic) -> Bool {
        switch self {
        case .all: true
        case .only(let bundles): bundles.contains(bundle)
        }
    }
}
