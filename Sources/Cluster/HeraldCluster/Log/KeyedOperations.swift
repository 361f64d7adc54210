import Synchronization

/// Runs the operations of each key one after another, and those of different keys together.
final class KeyedOperations<Key: Hashable & Sendable>: Sendable {
    typealias Finish = @Sendable () -> Void
    typealias Operation = @Sendable (_ finish: @escaping Finish) -> Void

    /// The keys with an operation under way, and the operations that wait for it.
    private let waiting = Mutex<[Key: [Operation]]>([:])

    /// Runs an operation when those of its key before it have finished; it calls `finish` once, from any thread.
    func run(_ key: Key, _ operation: @escaping Operation) {
        let isFirst = waiting.withLock { waiting in
            guard waiting[key] == nil else {
                waiting[key]?.append(operation)
                return false
            }
            waiting[key] = []
            return true
        }
        if isFirst { drive(key, operation) }
    }

    /// Waits until all operations that were begun before this call have finished.
    func drain() async {
        let keys = waiting.withLock { Array($0.keys) }
        for key in keys {
            await withCheckedContinuation { continuation in
                run(key) { finish in
                    finish()
                    continuation.resume()
                }
            }
        }
    }

    /// Runs an operation, and those after it.
    ///
    /// A loop while operations finish at once: a long queue needs no deep stack.
    private func drive(_ key: Key, _ first: @escaping Operation) {
        var operation = first
        while true {
            let turn = Turn()
            operation { [self] in
                guard turn.endsAlone(.finished) else { return }
                if let next = next(key) { drive(key, next) }
            }
            guard !turn.endsAlone(.returned), let next = next(key) else { return }
            operation = next
        }
    }

    private func next(_ key: Key) -> Operation? {
        waiting.withLock { waiting in
            guard waiting[key]?.isEmpty == false else {
                waiting[key] = nil
                return nil
            }
            return waiting[key]?.removeFirst()
        }
    }

    /// One operation: it has returned and has finished, in either order; the later of both goes on.
    private final class Turn: Sendable {
        enum Part {
            case finished
            case returned
        }

        private let first = Mutex<Part?>(nil)

        /// Notes a part.
        ///
        /// - Returns: For `finished`, whether the operation had returned; for `returned`, whether it has not finished.
        func endsAlone(_ part: Part) -> Bool {
            first.withLock { first in
                defer { first = first ?? part }
                switch part {
                case .finished: return first == .returned
                case .returned: return first == nil
                }
            }
        }
    }
}
