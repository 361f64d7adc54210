import HeraldMailbox
import HeraldModel
import Synchronization

/// Errands in which those of one device are run one after the other.
///
/// The order counts across connections: what an older connection has to say of the session must not land on what a newer
/// one made of it.
final class DeviceErrands: Sendable {
    enum Errand: Sendable {
        /// Waits for what it needs.
        case task(@Sendable () async -> Void)
        /// Only begins something, and returns at once; `isOver` is called once, from any thread, when that has ended. Costs
        /// less than a task.
        case call(@Sendable (_ isOver: @escaping @Sendable () -> Void) -> Void)
    }

    private struct State {
        /// Devices with an errand under way, and what waits behind it; bounded by the operations of their connections.
        var waiting: [DeviceID: [Errand]] = [:]
        var isFinishing = false

        var isDone: Bool { isFinishing && waiting.isEmpty }
    }

    private let errands = Errands()
    private let state = Mutex(State())

    /// Begins an errand of a device, at once unless another is under way.
    ///
    /// Once ``finish()`` was called and nothing is under way, nothing is begun any more.
    func add(_ device: DeviceID, _ errand: Errand) {
        let begins = state.withLock { state in
            guard !state.isDone else { return false }
            guard state.waiting[device] == nil else {
                state.waiting[device]?.append(errand)
                return false
            }
            state.waiting[device] = []
            return true
        }
        if begins { begin(device, errand) }
    }

    /// Lets ``run()`` return once nothing is under way.
    func finish() {
        let isDone = state.withLock { state in
            state.isFinishing = true
            return state.isDone
        }
        if isDone { errands.finish() }
    }

    func run() async {
        await errands.run()
    }

    private func begin(_ device: DeviceID, _ errand: Errand) {
        switch errand {
        case .task(let errand):
            errands.add {
                await errand()
                self.ended(device)
            }
        case .call(let errand):
            errand { self.ended(device) }
        }
    }

    /// An errand is over; the next one of the device begins.
    private func ended(_ device: DeviceID) {
        let (next, isDone) = state.withLock { state -> (Errand?, Bool) in
            guard let rest = state.waiting[device], let first = rest.first else {
                state.waiting[device] = nil
                return (nil, state.isDone)
            }
            state.waiting[device] = Array(rest.dropFirst())
            return (first, false)
        }
        if let next { begin(device, next) }
        if isDone { errands.finish() }
    }
}
