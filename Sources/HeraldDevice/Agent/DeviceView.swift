package import HeraldModel

/// A file of an app that a view shows or plays.
package enum BundleFileKind: Hashable, Sendable {
    /// The app's icon; the name does not matter.
    case icon
    /// A sound, by its file name.
    case sound
    /// A picture of the bundle, by its file name.
    case image
}

/// A device as its views know it.
package protocol DeviceView: Sendable {
    /// How it looks now.
    func snapshot() async -> PhoneSnapshot
    /// How it looks now, and after each change; of several changes that nobody has read, the newest.
    func snapshots() async -> AsyncStream<PhoneSnapshot>
    /// Does what the user does.
    ///
    /// Throws ``DeviceError/Code/notPossible`` with words for people.
    func perform(_ action: PhoneAction) async throws
    /// What the user saw of a notification, once it has come; nil if it does not within that time.
    func saw(_ id: NotificationID, within time: Duration) async -> SawRecord?
    /// A file of an app; nil if there is none, or it is larger than a view would show.
    func file(_ kind: BundleFileKind, of topic: Topic, named name: String) async -> [UInt8]?
}
