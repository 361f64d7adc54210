package import HeraldModel

/// The reason why an import is refused, or why a node waits for its end.
package enum ImportProblem: Error, Hashable, CustomStringConvertible {
    /// The servers have data of a cluster.
    case notEmpty
    /// A stream has messages, but the cluster's record is missing.
    case leftovers(stream: String)
    /// An import of another folder has begun.
    case otherImport(since: WallTime)
    /// An import has begun, and has not ended.
    case underWay(since: WallTime)
    /// Another import has begun while this one was under way.
    case takenOver
    /// The cluster is new, and the folder of the node has devices.
    case notImported

    package var description: String {
        switch self {
        case .notEmpty:
            "the cluster is not empty: an import takes everything into NATS servers that have no data of Herald's yet. A "
                + "further node of this cluster needs no import: it starts with an empty folder and --cluster-key"
        case .leftovers(let stream):
            "the NATS servers are not empty: the stream \(stream) has messages. Stop them, empty their store_dir, and start "
                + "them again"
        case .otherImport(let since):
            "an import of another folder began at \(since.rfc3339), and has not ended: repeat that one; to give it up, stop "
                + "the NATS servers and empty their store_dir"
        case .underWay(let since):
            "an import into this cluster began at \(since.rfc3339), and has not ended: wait for it; if it was interrupted, "
                + "repeat herald cluster import"
        case .takenOver:
            "another import of this folder has begun meanwhile, and goes on: nothing is lost"
        case .notImported:
            "the cluster is new, and this folder has the devices and notifications of another one: take them over with herald "
                + "cluster import, or start with an empty folder"
        }
    }
}
