import HeraldModel
import HeraldPhone

/// Decides what the desktop shows, from the device's snapshots and the desktop's answers.
///
/// Knows no bus.
///
/// The desktop shows notifications that arrive while the agent runs, at most the newest ``maximumShown``, so that a device
/// which was offline for long does not flood the screen.
struct DesktopPlan: Sendable {
    /// An effect for the session to perform.
    enum Effect: Hashable, Sendable {
        /// Shows a notification. The desktop's answer goes to ``shown(_:as:)`` or ``notShown(_:)`` with its identifier.
        case show(String, DesktopNotification, replacing: UInt32)
        /// Removes a notification from the desktop.
        case close(UInt32)
    }

    /// The reason why the desktop closed a notification (`NotificationClosed`).
    enum Closing: UInt32, Sendable {
        case expired = 1
        case dismissed = 2
        case asked = 3
    }

    /// Files of apps that the desktop reads.
    struct Files: Hashable, Sendable {
        var icons: [Topic: String] = [:]
        /// Sound files by the sound's identifier in the snapshot.
        var sounds: [String: String] = [:]
    }

    /// The most notifications on the desktop.
    static let maximumShown = 20

    private struct Entry: Sendable {
        var notification: PhoneSnapshot.Notification
        /// The older notifications of its thread for which it stands.
        var older: [String] = []
        /// The desktop's number for it; nil until the desktop has answered.
        var number: UInt32?
        /// Whether the desktop has not confirmed yet that it shows it.
        var isPending = true
        /// Whether it must be removed as soon as its number is known.
        var isUnwanted = false
        /// Whether the user has responded on the desktop; later signals are not a second response.
        var isAnswered = false
    }

    private enum Service: Sendable {
        /// Its capabilities were requested. New notifications are shown when it has answered.
        case awaited
        case absent
        case present(capabilities: Set<String>)
    }

    private var service = Service.awaited
    /// The notifications and sounds of the last snapshot.
    private var known: Set<String>
    private var heard: Set<String> = []
    /// The notifications that the desktop shows, or was asked to show; oldest first.
    private var entries: [Entry] = []
    /// The last snapshot while the service was awaited.
    private var last: (snapshot: PhoneSnapshot, files: Files)?

    /// Creates a plan that does not show the `known` notifications, which are older than the run of the agent.
    init(known: Set<String>) {
        self.known = known
    }

    // MARK: - Device

    /// Takes a snapshot of the device.
    mutating func show(_ snapshot: PhoneSnapshot, files: Files) -> [Effect] {
        if case .awaited = service {
            last = (snapshot, files)
            return []
        }
        let here = Set(snapshot.notifications.map(\.id))
        // Newest first, as in the snapshot.
        let new = snapshot.notifications.filter { !known.contains($0.id) }
        let sounds = soundsByNotification(snapshot, new)
        known = here
        heard = Set(snapshot.sounds.map(\.id))
        var gone = entries.filter { !here.contains($0.notification.id) && !$0.isUnwanted }.map(\.notification)
        var effects: [Effect] = []
        if case .present(let capabilities) = service {
            // A desktop that does not answer gets no further requests.
            let room = max(0, Self.maximumShown - entries.count(where: \.isPending))
            for group in Self.threads(new).prefix(room).reversed() {
                guard let newest = group.first else { continue }
                let sound: DesktopNotification.Sound =
                    switch group.lazy.compactMap({ sounds[$0.id] }).first {
                    case nil: .none
                    case let sound?: files.sounds[sound].map { .file($0) } ?? .standard
                    }
                let number = addEntry(for: newest, older: group.dropFirst().map(\.id), here, &gone)
                let notice = DesktopNotification(
                    newest,
                    count: 1 + (entries.last?.older.count ?? 0),
                    icon: files.icons[newest.topic],
                    sound: sound,
                    words: snapshot.words,
                    capabilities: capabilities
                )
                effects.append(.show(newest.id, notice, replacing: number))
            }
        }
        for notification in gone { effects += remove(notification.id) }
        if entries.count > Self.maximumShown {
            for entry in entries.prefix(entries.count - Self.maximumShown) { effects += remove(entry.notification.id) }
        }
        return effects
    }

    // MARK: - Desktop

    /// A notification service has appeared, with these capabilities.
    mutating func serviceCame(_ capabilities: Set<String>) -> [Effect] {
        service = .present(capabilities: capabilities)
        return catchUp()
    }

    /// Another notification service has appeared, and its capabilities were requested.
    ///
    /// Earlier notifications are gone.
    mutating func serviceIsAwaited() {
        service = .awaited
        entries = []
    }

    /// The notification service has disappeared, with its notifications.
    mutating func serviceWent() {
        service = .absent
        entries = []
        _ = catchUp()
    }

    private mutating func catchUp() -> [Effect] {
        defer { last = nil }
        return last.map { show($0.snapshot, files: $0.files) } ?? []
    }

    /// The desktop shows a notification, under this number.
    mutating func shown(_ id: String, as number: UInt32) -> [Effect] {
        guard let index = entries.firstIndex(where: { $0.notification.id == id }) else { return [.close(number)] }
        entries[index].number = number
        entries[index].isPending = false
        guard entries[index].isUnwanted else { return [] }
        entries.remove(at: index)
        return [.close(number)]
    }

    /// The desktop does not show a notification.
    mutating func notShown(_ id: String) {
        entries.removeAll { $0.notification.id == id }
    }

    /// The user has clicked on a notification or a button.
    /// - Returns: The action on the device.
    mutating func invoked(_ number: UInt32, key: String) -> PhoneAction? {
        guard let index = entries.firstIndex(where: { $0.number == number }), !entries[index].isAnswered,
            let action = DesktopNotification.action(key, of: entries[index].notification)
        else { return nil }
        entries[index].isAnswered = true
        return action
    }

    /// The desktop has closed a notification.
    ///
    /// A notification that expired on the desktop stays on the device.
    /// - Returns: The actions on the device; a thread is closed as a whole.
    mutating func closed(_ number: UInt32, _ reason: Closing?) -> [PhoneAction] {
        guard let index = entries.firstIndex(where: { $0.number == number }) else { return [] }
        let entry = entries.remove(at: index)
        guard reason == .dismissed, !entry.isAnswered else { return [] }
        return ([entry.notification.id] + entry.older).map { .close(id: $0) }
    }

    /// The agent ends; its notifications are removed.
    mutating func end() -> [Effect] {
        defer { entries = [] }
        return entries.compactMap { $0.number.map { .close($0) } }
    }

    // MARK: - Entries

    /// The new notifications by thread, newest first; one without a thread stands alone.
    private static func threads(_ new: [PhoneSnapshot.Notification]) -> [[PhoneSnapshot.Notification]] {
        new.reduce(into: []) { groups, notification in
            if let index = groups.firstIndex(where: { $0.first.map { isOfOneThread($0, notification) } ?? false }) {
                groups[index].append(notification)
            } else {
                groups.append([notification])
            }
        }
    }

    private static func isOfOneThread(
        _ one: PhoneSnapshot.Notification,
        _ other: PhoneSnapshot.Notification
    ) -> Bool {
        one.thread != nil && one.thread == other.thread && one.topic == other.topic
    }

    /// Adds an entry, in place of that of its thread, or of the notification that it replaces.
    ///
    /// The replaced notification is gone, and its identifier is unknown. Any of several that are gone will do.
    /// - Returns: The desktop's number of the former entry, or 0.
    private mutating func addEntry(
        for notification: PhoneSnapshot.Notification,
        older: [String],
        _ here: Set<String>,
        _ gone: inout [PhoneSnapshot.Notification]
    ) -> UInt32 {
        var entry = Entry(notification: notification, older: older)
        defer { entries.append(entry) }
        let thread = entries.lastIndex { former in
            !former.isAnswered && !former.isUnwanted && Self.isOfOneThread(former.notification, notification)
        }
        if let thread {
            let former = entries[thread]
            entry.older += ([former.notification.id] + former.older).filter(here.contains)
            guard let number = former.number else {
                // The desktop has not named it yet: it is removed as soon as it has.
                entries[thread].isUnwanted = true
                return 0
            }
            entry.number = number
            entries.remove(at: thread)
            gone.removeAll { $0.id == former.notification.id }
            return number
        }
        guard notification.replaced,
            let index = entries.lastIndex(where: { former in
                former.number != nil && !former.isAnswered && former.notification.topic == notification.topic
                    && gone.contains { $0.id == former.notification.id }
            })
        else { return 0 }
        let former = entries.remove(at: index)
        gone.removeAll { $0.id == former.notification.id }
        entry.number = former.number
        return former.number ?? 0
    }

    private mutating func remove(_ id: String) -> [Effect] {
        guard let index = entries.firstIndex(where: { $0.notification.id == id }) else { return [] }
        guard let number = entries[index].number else {
            entries[index].isUnwanted = true
            return []
        }
        entries.remove(at: index)
        return [.close(number)]
    }

    /// Assigns each new sound to the new notification of the same app before it.
    private func soundsByNotification(
        _ snapshot: PhoneSnapshot,
        _ new: [PhoneSnapshot.Notification]
    ) -> [String: String] {
        var owners: [String: String] = [:]
        for sound in snapshot.sounds.reversed() where !heard.contains(sound.id) {
            let owner = new.first { owners[$0.id] == nil && $0.topic == sound.topic && $0.time <= sound.time }
            if let owner { owners[owner.id] = sound.id }
        }
        return owners
    }
}
