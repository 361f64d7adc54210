/// A table of fixed size that forgets: entries stand in sets of four, and a fifth of one set replaces one of the four.
///
/// Look-up and insertion take the same few steps however full it is, and nothing that a peer sends makes it grow. It has
/// no lock and knows no keys; the caller compares.
struct BoundedCache<Entry: Sendable>: Sendable {
    private static var ways: Int { 4 }

    private var entries: [Entry?]
    /// Beside the entries, so that those of other keys are passed over without being touched.
    private var hashes: [UInt64]
    private let setMask: Int
    private var victim = 0

    /// Makes an empty table.
    /// - Parameter capacity: How many entries it holds at most; rounded up to a power of two, at least 4.
    init(capacity: Int) {
        var sets = 1
        while sets * Self.ways < capacity { sets *= 2 }
        setMask = sets - 1
        entries = Array(repeating: nil, count: sets * Self.ways)
        hashes = Array(repeating: 0, count: sets * Self.ways)
    }

    /// The first entry of this hash that the caller recognizes.
    @inline(__always)
    func first(hash: UInt64, where matches: (Entry) -> Bool) -> Entry? {
        let start = setStart(hash)
        for index in start..<start + Self.ways where hashes[index] == hash {
            if let entry = entries[index], matches(entry) { return entry }
        }
        return nil
    }

    /// Puts an entry into a free place of its set, or into that of another.
    mutating func insert(_ entry: Entry, hash: UInt64) {
        let start = setStart(hash)
        var place = (start..<start + Self.ways).first { entries[$0] == nil }
        if place == nil {
            victim = (victim + 1) % Self.ways
            place = start + victim
        }
        guard let place else { return }
        entries[place] = entry
        hashes[place] = hash
    }

    mutating func removeAll() {
        for index in entries.indices { entries[index] = nil }
    }

    private func setStart(_ hash: UInt64) -> Int {
        (Int(truncatingIfNeeded: hash) & setMask) * Self.ways
    }
}
