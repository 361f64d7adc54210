package import HeraldModel

/// A change of the registry.
package enum RegistryChange: Hashable, Sendable {
    /// A device has got its number.
    case device(DeviceID, DeviceNumber)
    /// An app has got its number.
    case app(AppRecord)
    /// An app was forgotten, and its number is retired.
    case appForgotten(AppRecord)
    /// A registration was made or has changed, and is this now.
    case registration(Registration)
    /// An ended registration was forgotten.
    case registrationForgotten(Slot)
    /// The token of a slot was taken off the feedback list.
    case feedbackCleared(Slot)
}

/// Takes over the changes of a store's registry.
package protocol RegistrySink: Sendable {
    /// Applies changes in their order; called from one thread at a time.
    func apply(_ changes: [RegistryChange])
}
