package import HeraldModel

/// The registrations, for the registry.
extension PostOffice {
    package func registration(_ slot: Slot) -> Registration? {
        at(slot.device) { $0.slots.registration(slot) }
    }

    /// The registrations of a device in some apps.
    func registrations(of device: DeviceNumber, in apps: [AppNumber]) -> [Registration] {
        at(device) { shard in apps.compactMap { shard.slots.registration(Slot(device: device, app: $0)) } }
    }

    package func setRegistration(_ registration: Registration) {
        at(registration.slot.device) { $0.slots.setRegistration(registration) }
    }

    /// Sets all registrations of the store; once, before anything is posted.
    func setRegistrations(_ registrations: [Registration]) {
        let share = registrations.count / shards.count
        for shard in shards { at(shard) { $0.slots.reserve(share + share / 8) } }
        for registration in registrations { setRegistration(registration) }
    }

    /// Replaces a registration by its successor, which may have ended it, or have made it again.
    /// - Returns: The former registration.
    @discardableResult
    package func replaceRegistration(_ registration: Registration) -> Registration? {
        at(registration.slot.device) { $0.replaceRegistration(registration) }
    }

    /// Forgets an ended registration.
    func forgetRegistration(_ slot: Slot) {
        at(slot.device) { $0.slots.forgetRegistration(slot) }
    }

    /// Tells the number of an app: a newsstand app is owed a notification each day.
    func setNumber(_ number: AppNumber, of app: App) {
        guard configuration.newsstandTopics.contains(app.topic) else { return }
        for shard in shards { at(shard) { $0.holdRules.budget.addNewsstand(number) } }
    }
}
