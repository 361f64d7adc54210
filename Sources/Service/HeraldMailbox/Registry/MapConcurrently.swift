import Synchronization

/// Calls `body` for several keys concurrently; each succeeds or fails by itself.
///
/// A locked table collects the results. In optimized builds of Swift 6.3 a key that a task returned beside its `Result` was
/// empty.
func mapConcurrently<Key: Hashable & Sendable, Value: Sendable>(
    _ keys: some Sequence<Key>,
    _ body: @escaping @Sendable (Key) async throws -> Value
) async -> [Key: Result<Value, any Error>] {
    let outcomes = Outcomes<Key, Value>()
    await withTaskGroup(of: Void.self) { group in
        for key in keys {
            group.addTask {
                do {
                    outcomes.set(.success(try await body(key)), of: key)
                } catch {
                    outcomes.set(.failure(error), of: key)
                }
            }
        }
    }
    return outcomes.all
}

private final class Outcomes<Key: Hashable & Sendable, Value: Sendable>: Sendable {
    private let table = Mutex<[Key: Result<Value, any Error>]>([:])

    var all: [Key: Result<Value, any Error>] { table.withLock { $0 } }

    func set(_ result: Result<Value, any Error>, of key: Key) {
        table.withLock { $0[key] = result }
    }
}
