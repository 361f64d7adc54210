import GRDB

/// Deletes notifications from segments, and compacts segments on the writer's connection.
///
/// A deletion sets a bit in the segment's tombstone row. When at most a quarter of a segment is live, the same commit
/// compacts it: it copies the live notifications, byte for byte, into a new segment at the end and deletes the old one.
/// So more than a quarter of every segment is live, and Herald copies at most one notification for three deleted ones.
struct SegmentCompaction {
    typealias Move = ([(header: NotificationHeader, position: SegmentPosition)]) -> Bool
    typealias Append = (NotificationHeader, UnsafeRawBufferPointer) throws -> Void

    private let deletion: HotStatement
    private let selection: HotStatement
    private let tombstoneInsertion: HotStatement
    private let tombstoneDeletion: HotStatement
    private let tombstoneSelection: HotStatement

    /// - Throws: `DatabaseError`.
    init(_ database: Database) throws {
        deletion = try HotStatement(database, sql: "DELETE FROM segment WHERE number = ?")
        selection = try HotStatement(database, sql: SegmentReader.selection)
        tombstoneInsertion = try HotStatement(database, sql: "REPLACE INTO tombstone (segment, bits) VALUES (?, ?)")
        tombstoneDeletion = try HotStatement(database, sql: "DELETE FROM tombstone WHERE segment = ?")
        tombstoneSelection = try HotStatement(database, sql: "SELECT bits FROM tombstone WHERE segment = ?")
    }

    /// Adds tombstones, and compacts segments of which at most a quarter is live.
    /// - Parameters:
    ///   - deleted: In ascending order.
    ///   - move: See ``SegmentTable/delete(_:move:)``.
    ///   - append: Writes a live notification to the segment at the end.
    /// - Throws: `DatabaseError`, also for an invalid tombstone.
    func delete(_ deleted: [SegmentPosition], move: Move, append: Append) throws {
        var rest = deleted[...]
        while let first = rest.first {
            let end = rest.firstIndex { $0.segment != first.segment } ?? rest.endIndex
            let number = first.segment
            var tombstones = Tombstones(rest[..<end])
            rest = rest[end...]
            var hasRow = false
            if tombstones.count < first.count, let earlier = try self.tombstones(of: number, count: first.count) {
                tombstones.formUnion(earlier)
                hasRow = true
            }
            let live = first.count - tombstones.count
            let isDue = live * 4 <= first.count
            guard isDue,
                try live == 0 || copyLive(number, count: first.count, except: tombstones, move: move, append: append)
            else {
                tombstoneInsertion.bind(number, at: 1)
                tombstoneInsertion.bind(tombstones.stored(for: number), at: 2)
                try tombstoneInsertion.run()
                continue
            }
            deletion.bind(number, at: 1)
            try deletion.run()
            if hasRow {
                tombstoneDeletion.bind(number, at: 1)
                try tombstoneDeletion.run()
            }
        }
    }

    private func tombstones(of number: Int64, count: Int) throws -> Tombstones? {
        tombstoneSelection.bind(number, at: 1)
        var tombstones: Tombstones?
        try tombstoneSelection.forEachRow { row in
            guard let found = Tombstones(stored: row.integer(0), for: number), found.areWithin(count) else {
                throw SegmentReader.invalidRow
            }
            tombstones = found
            return false
        }
        return tombstones
    }

    /// Copies the live notifications of a segment to the end.
    /// - Returns: Whether the segment can be deleted: its live notifications are copied, or the segment does not exist.
    private func copyLive(
        _ number: Int64,
        count: Int,
        except tombstones: Tombstones,
        move: Move,
        append: Append
    ) throws -> Bool {
        // A tombstone without its segment would abort the next start.
        var isGone = true
        selection.bind(number, at: 1)
        try selection.forEachRow { row in
            isGone = false
            guard let segment = Segment(headers: row.bytes(0), bodies: row.bytes(1)), segment.count == count,
                segment.isWhole
            else { return false }
            let live = (0..<count).filter { !tombstones.contains($0) }.map { index in
                (
                    header: segment.header(index),
                    position: SegmentPosition(segment: number, index: index, count: count)
                )
            }
            guard live.allSatisfy({ $0.header.isValid }), move(live) else { return false }
            for one in live { try append(one.header, segment.body(one.position.index)) }
            isGone = true
            return false
        }
        return isGone
    }
}
