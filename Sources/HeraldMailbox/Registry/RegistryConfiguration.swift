/// The limits of the registry.
package struct RegistryConfiguration: Sendable {
    /// How many apps may be registered on one device at a time, in both environments together.
    ///
    /// 500: more than anybody installs, and few enough to send all that waits for them at once.
    package var appsPerDevice = 500
    /// How many ended registrations are remembered of one device; the longest ended are forgotten past it.
    ///
    /// A token of one that is remembered is answered 410 with the time, of one that is forgotten 400 `BadDeviceToken`.
    package var endedAppsPerDevice = 500
    /// How many different apps a service knows, in each environment; a name once heard is kept for ever.
    ///
    /// 100,000: a device that subscribes to one new name after the other fills no disk.
    package var apps = 100_000

    package init() {}
}

/// A registration that is past a limit of ``RegistryConfiguration``.
package enum RegistrationRefusal: Error, Hashable {
    /// ``RegistryConfiguration/appsPerDevice`` are registered on the device.
    case tooManyAppsOnDevice
    /// ``RegistryConfiguration/apps`` are known, and this is none of them.
    case tooManyApps
}
