import HeraldModel
import Synchronization

/// Hands out the numbers of devices and apps, each once in the life of the cluster.
///
/// A device's number has the cluster's incarnation above a counter. So the numbers of a cluster that was lost never come
/// again, and its tokens open nothing.
package final class ClusterNumbers: Sendable {
    private enum Kind: String {
        case devices
        case apps
    }

    private struct State {
        /// Numbers of devices that this node took and has not handed out.
        var devices: Range<UInt64> = 0..<0
        var counters: [Kind: Versioned<CounterRecord>] = [:]
    }

    private let incarnation: UInt32
    private let changes: RecordChanges
    private let operations = KeyedOperations<Kind>()
    private let state = Mutex(State())

    package init(incarnation: UInt32, changes: RecordChanges) {
        self.incarnation = incarnation
        self.changes = changes
    }

    /// A number that no device ever had.
    ///
    /// `highest` is the highest counter of a known device's number, for a counter in the log that was overwritten.
    /// `done` is called once, from any thread.
    func device(
        above highest: @escaping @Sendable (_ incarnation: UInt32) -> UInt64,
        _ done: @escaping @Sendable (Result<DeviceNumber, any Error>) -> Void
    ) {
        operations.run(.devices) { [self] finish in
            let deliver: @Sendable (Result<DeviceNumber, any Error>) -> Void = { result in
                finish()
                done(result)
            }
            if let number = takeDevice() { return deliver(.success(number)) }
            let first: @Sendable () -> UInt64 = { [incarnation] in
                highest(incarnation) + ClusterLimits.deviceNumberBlock * ClusterLimits.lostNumbers
            }
            take(ClusterLimits.deviceNumberBlock, of: .devices, upTo: 1 << 32, ifLost: first) { [self] result in
                deliver(
                    Result {
                        let block = try result.get()
                        state.withLock { $0.devices = block }
                        guard let number = takeDevice() else { throw OutOfNumbers() }
                        return number
                    }
                )
            }
        }
    }

    private func takeDevice() -> DeviceNumber? {
        let number = state.withLock { $0.devices.popFirst() }
        // The top eight bits are 0.
        return number.map { DeviceNumber(UInt64(incarnation) << 32 | $0) }
    }

    /// A number that no app ever had, with the parameters of ``device(above:_:)``.
    func app(
        above highest: @escaping @Sendable () -> UInt64,
        _ done: @escaping @Sendable (Result<AppNumber, any Error>) -> Void
    ) {
        operations.run(.apps) { [self] finish in
            take(1, of: .apps, upTo: 1 << 32, ifLost: { highest() + ClusterLimits.lostNumbers }) { result in
                finish()
                done(result.map { AppNumber(UInt32(truncatingIfNeeded: $0.lowerBound)) })
            }
        }
    }

    /// The counter of apps.
    static var nextApp: LogSubject { next(.apps) }

    private static func next(_ kind: Kind) -> LogSubject { .meta("next.\(kind.rawValue)") }

    /// Raises a counter; after a lost answer, numbers may be left out.
    private func take(
        _ count: UInt64,
        of kind: Kind,
        upTo end: UInt64,
        ifLost first: @escaping @Sendable () -> UInt64,
        _ done: @escaping @Sendable (Result<Range<UInt64>, any Error>) -> Void
    ) {
        let known = state.withLock { $0.counters[kind] ?? Versioned() }
        let replacement = Replacement {
            CounterRecord(next: max(known.record?.next ?? 0, first()))
        }
        changes.change(Self.next(kind), in: .meta, from: known, whenSetAside: replacement) { record in
            // 0 is not a number.
            let first = record?.next ?? 1
            guard first < end else { throw OutOfNumbers() }
            let next = min(first + count, end)
            record = CounterRecord(next: next)
            return first..<next
        } _: { [self] result in
            if let versioned = try? result.get().0 { state.withLock { $0.counters[kind] = versioned } }
            done(result.map(\.1))
        }
    }

    /// The error of a cluster that has handed out all numbers.
    struct OutOfNumbers: Error, CustomStringConvertible {
        var description: String { "the cluster has handed out all its numbers: no device or app can be new" }
    }
}
