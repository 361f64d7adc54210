import Foundation
public import HeraldModel

extension DeviceAgent: DeviceView {
    /// How it looks now.
    public func snapshot() -> PhoneSnapshot {
        phone.snapshot(clock.now())
    }

    /// How it looks now, and after each change; of several changes that nobody has read, the newest.
    public func snapshots() -> AsyncStream<PhoneSnapshot> {
        let (stream, watcher) = AsyncStream<PhoneSnapshot>.makeStream(bufferingPolicy: .bufferingNewest(1))
        lastWatcher += 1
        watchers[lastWatcher] = watcher
        watcher.yield(snapshot())
        return stream
    }

    /// Does what the user does.
    /// - Throws: ``DeviceError/Code/notPossible`` with words for people, ``BundleError``, ``DeviceError/Code/badFolder``.
    public func perform(_ action: PhoneAction) throws {
        if case .install(let path) = action {
            try install(bundle: path)
        } else {
            try carryOut { phone, now in try phone.perform(action, now) }
        }
    }

    /// Installs the bundle at a path: copies it.
    ///
    /// One with its identifier is replaced, and keeps permission and token.
    /// - Parameters:
    ///   - path: The bundle's folder.
    ///   - allow: What the user allows it, if nobody is to be asked.
    /// - Returns: The app.
    /// - Throws: ``BundleError``, ``DeviceError/Code/notPossible``, ``DeviceError/Code/badFolder``.
    @discardableResult
    public func install(bundle path: String, allow: Set<NotificationKind>? = nil) throws -> Topic {
        let full = URL(fileURLWithPath: path).standardizedFileURL.path
        let topic = try AppInformation(folder: full, limits: bundleLimits).topic
        guard phone.state.apps.count < limits.apps || phone.state.apps.contains(where: { $0.topic == topic }) else {
            throw DeviceError(.notPossible, "there are \(limits.apps) apps on this device already: remove one first")
        }
        do {
            let (information, bundle) = try folder.install(from: full, limits: bundleLimits)
            try carryOut { phone, now in try phone.install(information, bundle, allow: allow, now) }
        } catch let error as BundleError {
            throw DeviceError(.notPossible, error.description)
        }
        return topic
    }

    /// Installs an app of which nothing but its topic is known.
    /// - Parameters:
    ///   - topic: The topic; one that is installed stays as it is.
    ///   - allow: What the user allows it, if nobody is to be asked.
    /// - Throws: ``DeviceError/Code/notPossible``, ``DeviceError/Code/badFolder``.
    public func install(topic: Topic, allow: Set<NotificationKind>? = nil) throws {
        try carryOut { phone, now in
            if let index = phone.owner(of: topic) {
                guard let allow, phone.state.apps[index].permission == nil else { return [] }
                return phone.permit(index, allow, now)
            }
            return try phone.install(AppInformation(topic: topic), nil, allow: allow, now)
        }
    }

    /// What the user saw of a notification, once it has come; nil if it does not within that time.
    public func saw(_ id: NotificationID, within time: Duration = .zero) async -> SawRecord? {
        if let record = record(id.description) { return record }
        guard time > .zero else { return nil }
        let (found, continuation) = AsyncStream<SawRecord>.makeStream(bufferingPolicy: .bufferingNewest(1))
        lastWatcher += 1
        let number = lastWatcher
        waiters[number] = (id.description, continuation)
        defer { waiters[number] = nil }
        return await withTaskGroup(of: SawRecord?.self) { group in
            group.addTask {
                for await record in found { return record }
                return nil
            }
            group.addTask {
                try? await Task.sleep(for: time)
                return nil
            }
            defer { group.cancelAll() }
            return await group.next() ?? nil
        }
    }

    /// Whether an app's service program has a notification in its hands.
    func isWaitedFor(_ id: NotificationID) -> Bool {
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
