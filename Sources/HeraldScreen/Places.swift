import Synchronization

/// So many may do something at one time.
final class Places: Sendable {
    /// One of them; whoever took it leaves it once.
    final class Place: Sendable {
        private let places: Places
        private let isLeft = Mutex(false)

        fileprivate init(_ places: Places) {
            self.places = places
        }

        /// Makes room for another.
        func leave() {
            let first = isLeft.withLock { isLeft in
                defer { isLeft = true }
                return !isLeft
            }
            if first { places.free.withLock { $0 += 1 } }
        }

        // An answer that nobody wrote, because its connection was gone, leaves its place here.
        deinit { leave() }
    }

    private let free: Mutex<Int>

    init(_ count: Int) {
        free = Mutex(count)
    }

    /// A place, or nil if none is free.
    func take() -> Place? {
        let taken = free.withLock { free in
            guard free > 0 else { return false }
            free -= 1
            return true
        }
        return taken ? Place(self) : nil
    }
}
