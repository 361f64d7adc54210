import HeraldConsole
import HeraldModel
import Synchronization

/// A value that tests and a service share.
final class Shared<Value: Sendable>: Sendable {
    private let value: Mutex<Value>

    init(_ value: Value) { self.value = Mutex(value) }

    func withLock<Result: Sendable>(_ body: (inout Value) -> Result) -> Result {
        value.withLock { body(&$0) }
    }
}

/// New lines that a test gives.
final class StandInLines: LineSource {
    let batches = Mutex<[LineBatch]>([])
    /// The places from which somebody followed.
    let places = Mutex<[UInt64?]>([])

    func follow(_ search: String, after place: UInt64?) async throws -> (any LineFollower)? {
        guard search != "wrong:" else { throw AdminError(.badRequest, "there is no key 'wrong:'") }
        places.withLock { $0.append(place) }
        return Follower(lines: self)
    }

    private struct Follower: LineFollower {
        let lines: StandInLines

        var place: UInt64 { 23 }

        func take() -> LineBatch? { lines.batches.withLock { $0.isEmpty ? nil : $0.removeFirst() } }
    }
}
