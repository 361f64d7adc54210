/// The limits of the registry.
package struct RegistryConfiguration: Sendable {
    /// Limit of registered apps on one device, in both environments together.
    ///
    /// 500: more than anybody installs, and few enough to send what waits for all of them at once.
    package var appsPerDevice = 500
    /// Limit of ended registrations that are remembered of one device; the oldest are forgotten past it.
    ///
    /// The token of a remembered one is answered 410 with the time, of a forgotten one 400 `BadDeviceToken`.
    package var endedAppsPerDevice = 500
    /// Limit of app names that the service knows, in both environments together.
    ///
    /// 100,000: some 30 MB of memory. A name stays until the operator forgets it, because device tokens contain its number.
    package var apps = 100_000
    /// Limit of app names that one device brings, and one team by creating channels.
    ///
    /// 1,000: a device with 500 apps that replaces all of them by others that nobody had. So one device cannot use up the
    /// names of all.
    package var newNames = 1000
    /// Limit of those names within a day.
    ///
    /// 600: a device with 500 apps that is the first of its service.
    package var newNamesPerDay = 600

    package init() {}
}

/// A limit of ``RegistryConfiguration`` that refuses a registration or a channel.
package enum RegistrationRefusal: Error, Hashable, CustomStringConvertible {
    /// ``RegistryConfiguration/appsPerDevice`` are registered on the device.
    case tooManyAppsOnDevice
    /// The device or team has used up its ``RegistryConfiguration/newNames``.
    case tooManyNewNames
    /// ``RegistryConfiguration/apps`` are known, and this is a new one.
    case tooManyApps
    /// No credential names the topic, and the service registers no other.
    case unknownTopic

    package var description: String {
        switch self {
        case .tooManyAppsOnDevice: "this device has as many apps as it may have"
        case .tooManyNewNames: "this device has brought as many new app names as it may, in all or today"
        case .tooManyApps: "the service takes no new app names"
        case .unknownTopic: "no credential of the service names the topic"
        }
    }
}
