import Synchronization

/// How much memory the bodies take of requests that have not ended, over all connections of a gateway.
///
/// A connection asks for it at the end of a read burst, and only for what is more than one body: whoever sends his
/// requests whole, or is interrupted in the middle of one, is neither counted nor refused.
final class BodyLoad: Sendable {
    private let bytes = Atomic<Int>(0)
    private let limit: Int

    init(limit: Int) {
        self.limit = limit
    }

    /// How many bytes are held.
    var current: Int { bytes.load(ordering: .relaxed) }

    /// Asks to hold so many more; callable from any thread.
    /// - Returns: false if that were more than the limit; nothing has changed then.
    func take(_ count: Int) -> Bool {
        guard bytes.wrappingAdd(count, ordering: .relaxed).newValue <= limit else {
            giveBack(count)
            return false
        }
        return true
    }

    func giveBack(_ count: Int) {
        bytes.wrappingSubtract(count, ordering: .relaxed)
    }
}

/// What one session holds of unfinished bodies, and how much of that it has asked for.
struct BodyAccount {
    let load: BodyLoad
    /// What is held without being asked for.
    let free: Int
    /// What is held now.
    var held = 0
    private var asked = 0

    init(load: BodyLoad, free: Int) {
        self.load = load
        self.free = free
    }

    /// Asks for what has come since the last time, or gives back what has gone.
    /// - Returns: false if there is no room: all of it is to be dropped.
    mutating func settle() -> Bool {
        let wanted = max(0, held - free)
        if wanted > asked {
            guard load.take(wanted - asked) else { return false }
        } else if wanted < asked {
            load.giveBack(asked - wanted)
        }
        asked = wanted
        return true
    }

    /// Nothing is held any more.
    mutating func clear() {
        held = 0
        load.giveBack(asked)
        asked = 0
    }
}
