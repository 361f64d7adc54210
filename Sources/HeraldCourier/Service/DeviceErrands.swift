import HeraldMailbox
import HeraldModel
import Synchronization

/// Errands in which those of one device are run one after the other.
///
/// The order counts across connections: what an older connection has to say of the session must not land on what a newer
/// one made of it.
final class DeviceErrands: Sendable {
    typealias Errand = @Sendable () async -> Void

    private struct State {
        /// Devices with an errand under way, and what waits behind it; bounded by the operations of their connections.
        var waiting: [DeviceID: [Errand]] = [:]
        /// Errands under way that are no tasks.
        var calls = 0
        var isFinishing = false
    }

    private let errands = Errands()
    private let state = Mutex(State())

    func add(_ device: DeviceID, _ errand: @escaping Errand) {
        guard begin(device, else: errand) else { return }
        errands.add { await self.run(device, errand) }
    }

    /// Begins an errand at once, if none of the device is under way.
    ///
    /// It does not wait, and calls what it is given, from any thread, when it is over. A task would cost more than most such
    /// errands.
    /// - Returns: false if one is under way; nothing is done then.
    func call(_ device: DeviceID, _ errand: (_ isOver: @escaping @Sendable () -> Void) -> Void) -> Bool {
        let begins = state.withLock { state in
            guard state.waiting[device] == nil, !state.isFinishing else { return false }
            state.waiting[device] = []
            state.calls += 1
            return true
        }
        guard begins else { return false }
        errand { self.callIsOver(device) }
        return true
    }

    private func callIsOver(_ device: DeviceID) {
        if let next = next(device) { errands.add { await self.run(device, next) } }
        let isLast = state.withLock { state in
            state.calls -= 1
            return state.isFinishing && state.calls == 0
        }
        if isLast { errands.finish() }
    }

    /// Takes no more; ``run()`` returns when what was taken is done.
    func finish() {
        let isLast = state.withLock { state in
            state.isFinishing = true
            return state.calls == 0
        }
        if isLast { errands.finish() }
    }

    func run() async {
        await errands.run()
    }

    private func run(_ device: DeviceID, _ first: @escaping Errand) async {
        var errand: Errand? = first
        while let current = errand {
            await current()
            errand = next(device)
        }
    }

    /// Whether the device has no errand under way, and this one begins; else it waits.
    private func begin(_ device: DeviceID, else errand: @escaping Errand) -> Bool {
        state.withLock { state in
            guard state.waiting[device] == nil else {
                state.waiting[device]?.append(errand)
                return false
            }
            state.waiting[device] = []
            return true
        }
    }

    /// What is done for the device after the errand that is over.
    private func next(_ device: DeviceID) -> Errand? {
        state.withLock { state in
            guard let rest = state.waiting[device], let first = rest.first else {
                state.waiting[device] = nil
                return nil
            }
            state.waiting[device] = Array(rest.dropFirst())
            return first
        }
    }
}
