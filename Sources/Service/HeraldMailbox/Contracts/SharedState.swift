package import HeraldModel

/// The state that the nodes of a cluster share, and that each of them follows.
///
/// A node is some milliseconds behind the others, or seconds when something fails. Before it says that something does not
/// exist, it catches up. A node that has stood still, or hears nothing, also does so before it accepts.
package protocol SharedState: Sendable {
    /// Takes over everything that any node had stored before this call.
    ///
    /// `done` is called once, from any thread, possibly before this returns; with an error if the state of the others cannot
    /// be learned.
    func catchUp(_ part: SharedPart, _ done: @escaping @Sendable (Result<Void, any Error>) -> Void)

    /// Whether this node may be behind with a part for longer than a node is that serves: it has stood still, or hears nothing.
    ///
    /// It is asked for every notification, so it takes no lock. ``SharedPart/apps`` and ``SharedPart/allRegistrations`` are
    /// never asked for: they are always caught up with.
    func isBehind(_ part: SharedPart) -> Bool
}

extension SharedState {
    /// ``catchUp(_:_:)`` as an async call.
    /// - Throws: If the state of the other nodes cannot be learned.
    package func catchUp(_ part: SharedPart) async throws {
        try await withCheckedThrowingContinuation { continuation in
            catchUp(part) { continuation.resume(with: $0) }
        }
    }
}

/// A part of the shared state.
package enum SharedPart: Hashable, Sendable {
    /// The apps and their numbers.
    case apps
    /// The apps, and the registrations of a device.
    case registrations(of: DeviceNumber)
    /// The apps, and the registrations of all devices.
    case allRegistrations
    /// The broadcast channels.
    case channels
    /// Keys of tokens and providers, owners of topics, invitations, devices, revocations.
    case trust
}
