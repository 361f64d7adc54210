/// A 4-way set-associative cache of fixed size: a fifth entry of a set replaces one of the four.
///
/// Look-up and insertion take the same few steps at any fill level, and no peer can make it grow. It has no lock. The
/// caller compares keys.
struct BoundedCache<Entry: Sendable>: Sendable {
    private static var ways: Int { 4 }

    private var entries: [Entry?]
    /// Separate from the entries, so that a look-up skips other keys without touching their entries.
    private var hashes: [UInt64]
    private let setMask: Int
    private var victim = 0

    /// - Parameter capacity: The most entries; rounded up to a power of two, at least 4.
    init(capacity: Int) {
        var sets = 1
        while sets * Self.ways < capacity { sets *= 2 }
        setMask = sets - 1
        entries = Array(repeating: nil, count: sets * Self.ways)
        hashes = Array(repeating: 0, count: sets * Self.ways)
    }

    @inline(__always)
    func first(hash: UInt64, where matches: (Entry) -> Bool) -> Entry? {
        let start = setStart(hash)
        for index in start..<start + Self.ways where hashes[index] == hash {
            if let entry = entries[index], matches(entry) { return entry }
        }
        return nil
    }

    /// Inserts an entry into a free way of its set, or replaces another entry.
    mutating func insert(_ entry: Entry, hash: UInt64) {
        let start = setStart(hash)
        var index = (start..<start + Self.ways).first { entries[$0] == nil }
        if index == nil {
            victim = (victim + 1) % Self.ways
            index = start + victim
        }
        guard let index else { return }
        entries[index] = entry
        hashes[index] = hash
    }

    mutating func removeAll() {
        for index in entries.indices { entries[index] = nil }
    }

    private func setStart(_ hash: UInt64) -> Int {
        (Int(truncatingIfNeeded: hash) & setMask) * Self.ways
    }
}
