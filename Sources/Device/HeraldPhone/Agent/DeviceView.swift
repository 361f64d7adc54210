package import HeraldModel

/// A file of an app that a view needs.
package enum BundleFileKind: Hashable, Sendable {
    /// The app's icon; its name is ignored.
    case icon
    case sound
    /// A picture in the bundle, by its file name.
    case image
}

/// A simulated device, as its views use it.
package protocol DeviceView: Sendable {
    func snapshot() async -> PhoneSnapshot
    /// The current snapshot, and one after each change. Of several unread snapshots, only the newest is kept.
    func snapshots() async -> AsyncStream<PhoneSnapshot>
    /// Performs an action of the user; throws ``DeviceError/Code/notPossible`` with an explanation.
    func perform(_ action: PhoneAction) async throws
    /// The display record of an `apns-id`, or the newest one of a local notification with this identifier, once it is shown;
    /// nil if it is not shown in time.
    func displayRecord(named name: String, within time: Duration) async -> DisplayRecord?
    /// The newest display records, and of these the ones that changed after a revision; oldest first.
    func displayLog(after revision: Int, limit: Int) async -> DisplayLogChanges
    /// Reads a file of an app; nil if there is none, or it is too large.
    func file(_ kind: BundleFileKind, of topic: Topic, named name: String) async -> [UInt8]?
}
