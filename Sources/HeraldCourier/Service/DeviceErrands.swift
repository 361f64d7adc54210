import HeraldMailbox
import HeraldModel
import Synchronization

/// Errands in which those of one device are run one after the other.
///
/// The order counts across connections: what an older connection has to say of the session must not land on what a newer
/// one made of it.
final class DeviceErrands: Sendable {
    typealias Errand = @Sendable () async -> Void

    private let errands = Errands()
    /// Devices with an errand under way, and what waits behind it; bounded by the operations of their connections.
    private let waiting = Mutex<[DeviceID: [Errand]]>([:])

    func add(_ device: DeviceID, _ errand: @escaping Errand) {
        let isFirst = waiting.withLock { waiting in
            guard waiting[device] == nil else {
                waiting[device]?.append(errand)
                return false
            }
            waiting[device] = []
            return true
        }
        guard isFirst else { return }
        errands.add { await self.run(device, errand) }
    }

    /// Takes no more; ``run()`` returns when what was taken is done.
    func finish() {
        errands.finish()
    }

    func run() async {
        await errands.run()
    }

    private func run(_ device: DeviceID, _ first: @escaping Errand) async {
        var next: Errand? = first
        while let errand = next {
            await errand()
            next = waiting.withLock { waiting in
                guard let rest = waiting[device], let first = rest.first else {
                    waiting[device] = nil
                    return nil
                }
                waiting[device] = Array(rest.dropFirst())
                return first
            }
        }
    }
}
