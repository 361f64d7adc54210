import HeraldModel
import Synchronization

/// Changes of the registry, of this node or another one.
extension Registry: RegistrySink {
    package func apply(_ changes: [RegistryChange]) {
        for change in changes { apply(change) }
    }

    /// Takes over a change that this node has stored; a store with shared state reports it itself.
    func changed(_ change: RegistryChange) {
        if store.shared == nil { apply(change) }
    }

    private func apply(_ change: RegistryChange) {
        switch change {
        case .device(let id, let number):
            numbers.withLock { numbers in
                numbers.devices[id] = number
                numbers.deviceNames[number] = id
            }
        case .app(let record):
            let now = clock.now()
            numbers.withLock { $0.apps.made(record, now: now) }
            postOffice.setNumber(record.number, of: record.app)
        case .appForgotten(let record):
            numbers.withLock { $0.apps.forgotten(record) }
        case .registration(let registration):
            apply(registration)
        case .registrationForgotten(let slot):
            guard let former = postOffice.registration(slot) else { return }
            postOffice.forgetRegistration(slot)
            numbers.withLock { $0.count(former, as: nil) }
        case .feedbackCleared(let slot):
            postOffice.feedback.forget([slot])
        }
    }

    private func apply(_ registration: Registration) {
        let former = postOffice.replaceRegistration(registration)
        let isNew = registration.isLive && !(former?.isLive(in: registration.generation) ?? false)
        if isNew { postOffice.feedback.forget([registration.slot]) }
        numbers.withLock { numbers in
            numbers.count(former, as: registration)
            if isNew { numbers.apps.noteRegistration(registration.slot.app) }
        }
    }
}

extension Registry.Numbers {
    /// Counts a registration that was another one, or none, until now.
    fileprivate mutating func count(_ former: Registration?, as registration: Registration?) {
        guard former?.isLive != registration?.isLive, let device = (registration ?? former)?.slot.device else { return }
        if let former { add(-1, to: device, isLive: former.isLive) }
        if let registration { add(1, to: device, isLive: registration.isLive) }
    }

    private mutating func add(_ number: Int32, to device: DeviceNumber, isLive: Bool) {
        if isLive {
            counts[device, default: Registry.Counts()].live += number
        } else {
            counts[device, default: Registry.Counts()].ended += number
        }
    }
}
