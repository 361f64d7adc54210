import GRDB
import HeraldModel

/// The tables `bundle` and `dead`, written by the writer's connection.
///
/// A notification dies by a bit in a small row of its bundle, not by a page of its own. A bundle of which no more than a
/// quarter is left goes in the same commit: who is left in it is written again, byte for byte, into a bundle at the end.
/// So of every bundle more than a quarter lives, and no more than one notification in three that die is written again.
struct BundleTable {
    private let insertion: HotStatement
    private let deletion: HotStatement
    private let selection: HotStatement
    private let marking: HotStatement
    private let unmarking: HotStatement
    private let markSelection: HotStatement
    private var packer = BundlePacker()
    /// The next bundle's number; those of a commit that failed are never used.
    private var nextNumber: Int64
    /// Where what was written since ``begin()`` lies, in the order in which it was appended, up to the last ``flush()``.
    private(set) var places: [Place] = []

    /// - Throws: `DatabaseError`.
    init(_ database: Database) throws {
        insertion = try HotStatement(database, sql: "INSERT INTO bundle (number, heads, bodies) VALUES (?, ?, ?)")
        deletion = try HotStatement(database, sql: "DELETE FROM bundle WHERE number = ?")
        selection = try HotStatement(database, sql: BundleReader.selection)
        marking = try HotStatement(database, sql: "REPLACE INTO dead (number, members) VALUES (?, ?)")
        unmarking = try HotStatement(database, sql: "DELETE FROM dead WHERE number = ?")
        markSelection = try HotStatement(database, sql: "SELECT members FROM dead WHERE number = ?")
        let newest = try Int64.fetchOne(database, sql: "SELECT max(number) FROM bundle") ?? 0
        let newestMark = try Int64.fetchOne(database, sql: "SELECT max(number) FROM dead") ?? 0
        nextNumber = max(newest, newestMark, 0) &+ 1
        guard Place.numbers.contains(nextNumber) else { throw BundleReader.nonsense }
    }

    /// Begins with nothing, for the next commit.
    mutating func begin() {
        packer.removeAll()
        places.removeAll(keepingCapacity: true)
    }

    // What is put.

    /// - Throws: `DatabaseError`.
    mutating func append(_ notification: Notification, sequence: UInt64) throws {
        let length = notification.payload.count + (notification.collapseID?.utf8.count ?? 0)
        if packer.isFull(for: length) { try flush() }
        packer.append(notification, sequence: sequence)
    }

    /// Appends one that was written before.
    /// - Throws: `DatabaseError`.
    mutating func append(_ head: Head, body: UnsafeRawBufferPointer) throws {
        if packer.isFull(for: body.count) { try flush() }
        packer.append(head, body: body)
    }

    /// Writes what was appended and is not written.
    /// - Throws: `DatabaseError`, also if there are no more numbers: then a damaged one was taken for the greatest.
    mutating func flush() throws {
        guard packer.count > 0 else { return }
        let number = nextNumber
        guard Place.numbers.contains(number) else { throw BundleReader.nonsense }
        nextNumber += 1
        insertion.bind(number, at: 1)
        try packer.heads.withUnsafeBytes { heads in
            insertion.bind(borrowed: heads, at: 2)
            try packer.bodies.withUnsafeBytes { bodies in
                insertion.bind(borrowed: bodies, at: 3)
                try insertion.run()
            }
        }
        for position in 0..<packer.count {
            places.append(Place(bundle: number, position: position, count: packer.count))
        }
        packer.removeAll()
    }

    // What dies.

    /// Notes deaths, and appends who is left in bundles that go with them.
    /// - Parameters:
    ///   - deaths: In ascending order.
    ///   - move: Told of each that is appended, in order; says whether it knows it at that place. A bundle with one that
    ///     it does not know is damaged, and stays as it is.
    /// - Throws: `DatabaseError`, also for marks that cannot have been written.
    mutating func bury(_ deaths: [Place], move: ([(head: Head, place: Place)]) -> Bool) throws {
        var rest = deaths[...]
        while let first = rest.first {
            let end = rest.firstIndex { $0.bundle != first.bundle } ?? rest.endIndex
            let number = first.bundle
            var dead = Members(rest[..<end])
            rest = rest[end...]
            var isMarked = false
            if dead.count < first.count, let before = try marks(number, of: first.count) {
                dead.formUnion(before)
                isMarked = true
            }
            let living = first.count - dead.count
            let isMostlyDead = living * 4 <= first.count
            guard isMostlyDead, try living == 0 || moveLiving(number, first.count, except: dead, move) else {
                marking.bind(number, at: 1)
                marking.bind(dead.stored(for: number), at: 2)
                try marking.run()
                continue
            }
            deletion.bind(number, at: 1)
            try deletion.run()
            if isMarked {
                unmarking.bind(number, at: 1)
                try unmarking.run()
            }
        }
    }

    private func marks(_ number: Int64, of count: Int) throws -> Members? {
        markSelection.bind(number, at: 1)
        var marks: Members?
        try markSelection.forEachRow { row in
            guard let found = Members(stored: row.integer(0), for: number), found.areWithin(count) else {
                throw BundleReader.nonsense
            }
            marks = found
            return false
        }
        return marks
    }

    /// - Returns: Whether nothing is left where they were: they were appended, or their bundle is not there.
    private mutating func moveLiving(
        _ number: Int64,
        _ count: Int,
        except dead: Members,
        _ move: ([(head: Head, place: Place)]) -> Bool
    ) throws -> Bool {
        let selection = selection
        // Marks of a bundle that is missing would be of no bundle, and the next start would refuse them.
        var isGone = true
        selection.bind(number, at: 1)
        try selection.forEachRow { row in
            isGone = false
            guard let bundle = Bundle(heads: row.bytes(0), bodies: row.bytes(1)), bundle.count == count, bundle.isWhole
            else { return false }
            let living = (0..<count).filter { !dead.contains($0) }.map { position in
                (head: bundle.head(position), place: Place(bundle: number, position: position, count: count))
            }
            guard living.allSatisfy({ $0.head.isSound }), move(living) else { return false }
            for one in living { try append(one.head, body: bundle.body(one.place.position)) }
            isGone = true
            return false
        }
        return isGone
    }
}
