import GRDB
import HeraldModel

/// Writes the tables `segment` and `tombstone` on the writer's connection.
struct SegmentTable {
    private let insertion: HotStatement
    private let compaction: SegmentCompaction
    private var builder = SegmentBuilder()
    /// The next segment's number.
    ///
    /// Numbers of a failed commit are never used.
    private var nextNumber: Int64
    /// Positions of the notifications written since ``begin()``, in the order of their appending, up to the last ``flush()``.
    private(set) var positions: [SegmentPosition] = []

    /// - Throws: `DatabaseError`.
    init(_ database: Database) throws {
        insertion = try HotStatement(database, sql: "INSERT INTO segment (number, headers, bodies) VALUES (?, ?, ?)")
        compaction = try SegmentCompaction(database)
        let newest = try Int64.fetchOne(database, sql: "SELECT max(number) FROM segment") ?? 0
        let newestTombstone = try Int64.fetchOne(database, sql: "SELECT max(segment) FROM tombstone") ?? 0
        nextNumber = max(newest, newestTombstone, 0) &+ 1
        guard SegmentPosition.numbers.contains(nextNumber) else { throw SegmentReader.invalidRow }
    }

    /// Starts the next commit.
    mutating func begin() {
        builder.removeAll()
        positions.removeAll(keepingCapacity: true)
    }

    // MARK: - Insertion

    /// - Throws: `DatabaseError`.
    mutating func append(_ notification: Notification, sequence: UInt64) throws {
        let length = notification.payload.count + (notification.collapseID?.text.utf8.count ?? 0)
        if builder.isFull(for: length) { try flush() }
        builder.append(notification, sequence: sequence)
    }

    /// Appends a stored notification of another segment.
    private mutating func append(_ header: NotificationHeader, body: UnsafeRawBufferPointer) throws {
        if builder.isFull(for: body.count) { try flush() }
        builder.append(header, body: body)
    }

    /// Writes the collected notifications as a segment.
    /// - Throws: `DatabaseError`, also if no segment number is left: then a damaged number was taken for the greatest.
    mutating func flush() throws {
        guard builder.count > 0 else { return }
        let number = nextNumber
        guard SegmentPosition.numbers.contains(number) else { throw SegmentReader.invalidRow }
        nextNumber += 1
        insertion.bind(number, at: 1)
        try builder.headers.withUnsafeBytes { headers in
            insertion.bind(borrowed: headers, at: 2)
            try builder.bodies.withUnsafeBytes { bodies in
                insertion.bind(borrowed: bodies, at: 3)
                try insertion.run()
            }
        }
        for index in 0..<builder.count {
            positions.append(SegmentPosition(segment: number, index: index, count: builder.count))
        }
        builder.removeAll()
    }

    // MARK: - Deletion

    /// Adds tombstones, and compacts segments of which at most a quarter is live.
    /// - Parameters:
    ///   - deleted: In ascending order.
    ///   - move: Gets the live notifications of a segment before they are copied, in order. It returns whether the index
    ///     has all of them at these positions. If not, the segment is damaged and stays unchanged.
    /// - Throws: `DatabaseError`, also for an invalid tombstone.
    mutating func delete(
        _ deleted: [SegmentPosition],
        move: ([(header: NotificationHeader, position: SegmentPosition)]) -> Bool
    ) throws {
        let compaction = compaction
        try compaction.delete(deleted, move: move) { header, body in try append(header, body: body) }
    }
}
