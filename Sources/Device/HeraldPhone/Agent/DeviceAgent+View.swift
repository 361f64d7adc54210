import Foundation
import HeraldDevice
public import HeraldModel

extension DeviceAgent: DeviceView {
    /// The current snapshot.
    public func snapshot() -> PhoneSnapshot {
        var snapshot = phone.snapshot(now)
        snapshot.displayLogRevision = displayLog.revision
        return snapshot
    }

    package func displayLog(after revision: Int, limit: Int) -> DisplayLogChanges {
        displayLog.changes(after: revision, limit: limit)
    }

    func displayRecord(_ id: String) -> DisplayRecord? { displayLog[id] }

    /// The display record of a notification, once it has arrived; nil if it does not arrive in time.
    public func displayRecord(of id: NotificationID, within time: Duration = .zero) async -> DisplayRecord? {
        await displayRecord(named: id.description, within: time)
    }

    /// Performs an action of the user.
    /// - Throws: ``DeviceError/Code/notPossible`` with an explanation, ``BundleError``, ``DeviceError/Code/badFolder``.
    public func perform(_ action: PhoneAction) throws {
        if case .install(let path) = action {
            try install(bundle: path)
        } else {
            if case .set(let switches) = action, switches.clock != nil || switches.timeZone != nil {
                refreshSoundsOfPending()
            }
            try apply { phone, now in try phone.perform(action, now) }
        }
    }

    /// Installs a copy of the bundle at a path.
    ///
    /// It replaces the app with its identifier, which keeps permission and token. Without `allow`, the user is asked.
    /// - Throws: ``BundleError``, ``DeviceError/Code/notPossible``, ``DeviceError/Code/badFolder``.
    @discardableResult
    public func install(bundle path: String, allow: Set<NotificationKind>? = nil) throws -> Topic {
        let full = URL(fileURLWithPath: path).standardizedFileURL.path
        let information = try AppInformation(folder: full, limits: bundleLimits)
        let topic = information.topic
        // Before the files of the former bundle are replaced.
        try phone.checkTopics(information)
        guard phone.state.apps.count < limits.apps || phone.state.apps.contains(where: { $0.topic == topic }) else {
            throw DeviceError(.notPossible, "there are already \(limits.apps) apps on this device: remove one first")
        }
        do {
            let (information, bundle) = try folder.install(from: full, limits: bundleLimits)
            try apply { phone, now in try phone.install(information, bundle, allow: allow, now) }
        } catch let error as BundleError {
            throw DeviceError(.notPossible, error.description)
        }
        return topic
    }

    /// Installs an app without a bundle, unless it is installed; without `allow`, the user is asked.
    /// - Throws: ``DeviceError/Code/notPossible``, ``DeviceError/Code/badFolder``.
    public func install(topic: Topic, allow: Set<NotificationKind>? = nil) throws {
        try apply { phone, now in
            if let index = phone.owner(of: topic) {
                guard let allow, phone.state.apps[index].permission == nil else { return [] }
                return phone.permit(index, allow, now)
            }
            return try phone.install(AppInformation(topic: topic), nil, allow: allow, now)
        }
    }

    /// The pending local notifications of an app, or of all apps; the next one first.
    /// - Throws: ``DeviceError/Code/notPossible`` if there is no such app.
    package func pending(of topic: Topic?) throws -> [PendingNotification] {
        if let topic { _ = try phone.app(topic) }
        return phone.state.pending.list(of: topic)
    }

    /// Whether an app's service program works on a notification.
    func isInServiceProgram(_ id: NotificationID) -> Bool {
        phone.state.runs.contains { $0.event == .service && $0.arrival?.apnsID == id.description }
    }

    package func file(_ kind: BundleFileKind, of topic: Topic, named name: String) -> [UInt8]? {
        guard let app = phone.state.apps.first(where: { $0.topic == topic }), let bundle = phone.bundles[topic] else {
            return nil
        }
        switch kind {
        case .icon:
            guard let icon = app.information.icon else { return nil }
            return folder.file(icon, in: folder.bundlePath(topic), limit: 1 << 20)
        case .image:
            guard bundle.images.contains(name) else { return nil }
            return folder.file(name, in: folder.bundlePath(topic), limit: 8 << 20)
        case .sound:
            if bundle.containerSounds[name] != nil {
                return folder.file(name, in: folder.containerPath(topic) + "/Library/Sounds", limit: 8 << 20)
            }
            guard bundle.sounds[name] != nil else { return nil }
            return folder.file(name, in: folder.bundlePath(topic), limit: 8 << 20)
        }
    }
}
