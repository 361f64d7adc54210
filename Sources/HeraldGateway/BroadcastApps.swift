package import HeraldModel

/// For which apps the service broadcasts: what Apple calls the app's broadcast capability.
package enum BroadcastApps: Hashable, Sendable {
    case all
    /// These alone, by their bundle identifiers; none at all if there are none.
    case only(Set<Topic>)

    func contains(_ bundle: Topic) -> Bool {
        switch self {
        case .all: true
        case .only(let bundles): bundles.contains(bundle)
        }
    }
}
