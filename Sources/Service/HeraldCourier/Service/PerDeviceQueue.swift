import HeraldMailbox
import HeraldModel
import Synchronization

/// Runs the operations of one device one after the other, and those of different devices side by side.
///
/// The order holds across connections: an older connection must not overwrite the session of a newer one.
final class PerDeviceQueue: Sendable {
    /// Begins something and returns at once; calls `done` once, from any thread, when that has ended.
    typealias Operation = @Sendable (_ done: @escaping @Sendable () -> Void) -> Void

    private struct State {
        /// Devices with an operation under way, and the operations that wait behind it.
        ///
        /// The limits of the connections bound how many wait.
        var waiting: [DeviceID: [Operation]] = [:]
        var isFinishing = false

        var isDone: Bool { isFinishing && waiting.isEmpty }
    }

    private let tasks = TaskQueue()
    private let state = Mutex(State())

    /// Begins an operation of a device, at once unless another is under way.
    ///
    /// Begins nothing once ``finish()`` was called and nothing is under way.
    func add(_ device: DeviceID, _ operation: @escaping Operation) {
        let begins = state.withLock { state in
            guard !state.isDone else { return false }
            guard state.waiting[device] == nil else {
                state.waiting[device]?.append(operation)
                return false
            }
            state.waiting[device] = []
            return true
        }
        if begins { operation { self.ended(device) } }
    }

    /// Adds an operation that waits, which takes a task.
    func addTask(_ device: DeviceID, _ body: @escaping @Sendable () async -> Void) {
        add(device) { done in
            self.tasks.add {
                await body()
                done()
            }
        }
    }

    /// Lets ``run()`` return once nothing is under way.
    func finish() {
        let isDone = state.withLock { state in
            state.isFinishing = true
            return state.isDone
        }
        if isDone { tasks.finish() }
    }

    func run() async {
        await tasks.run()
    }

    /// Begins the device's next operation.
    private func ended(_ device: DeviceID) {
        let (next, isDone) = state.withLock { state -> (Operation?, Bool) in
            guard let rest = state.waiting[device], let first = rest.first else {
                state.waiting[device] = nil
                return (nil, state.isDone)
            }
            state.waiting[device] = Array(rest.dropFirst())
            return (first, false)
        }
        if let next { next { self.ended(device) } }
        if isDone { tasks.finish() }
    }
}
