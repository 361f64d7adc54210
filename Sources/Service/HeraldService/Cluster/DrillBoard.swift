import HeraldCluster

/// The drills of a cluster as the log has them: decides what a node starts and stops.
///
/// Entries may come twice, and an own write may come before or after its echo: the greatest sequence of a drill counts.
struct DrillBoard {
    /// An order to the node.
    enum Order: Hashable {
        /// Starts a drill, or renews it.
        case start(Int, DrillRecord)
        case stop(Int)
        /// The record is of another version of Herald, or damaged.
        case skip(Int)
    }

    private struct Known {
        var record: DrillRecord?
        var sequence: UInt64
    }

    private let own: NodeName
    private var drills: [Int: Known] = [:]

    init(own: NodeName) {
        self.own = own
    }

    /// The number to try for the next drill.
    var nextID: Int { (drills.keys.max() ?? 0) + 1 }

    /// Another node has this number.
    mutating func isTaken(_ id: Int) {
        if drills[id] == nil { drills[id] = Known(record: nil, sequence: 0) }
    }

    /// The sequence of a drill that was not stopped.
    func sequence(of id: Int) -> UInt64? { drills[id].flatMap { $0.record == nil ? nil : $0.sequence } }

    /// The record of a drill that was not stopped.
    func record(of id: Int) -> DrillRecord? { drills[id]?.record }

    /// The drills that were not stopped; or those of this node's configuration.
    func ids(onlyConfiguredHere: Bool) -> [Int] {
        drills.filter { _, known in
            guard let record = known.record else { return false }
            return !onlyConfiguredHere || record.isConfigured && record.node == own.text
        }
        .keys.sorted()
    }

    mutating func take(_ entry: LogEntry) -> Order? {
        guard let id = entry.subject.drillID, entry.sequence > drills[id]?.sequence ?? 0 else { return nil }
        let record = entry.isTombstone ? nil : try? DrillRecord(entry.payload)
        drills[id] = Known(record: record, sequence: entry.sequence)
        guard !entry.isTombstone else { return .stop(id) }
        guard let record else { return .skip(id) }
        return !record.isConfigured || record.node == own.text ? .start(id, record) : nil
    }
}
