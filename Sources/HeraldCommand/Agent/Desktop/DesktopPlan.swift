import HeraldDevice
import HeraldModel

/// Decides what the desktop shows of a device, given how the device looks and what the desktop says; knows no bus.
///
/// The desktop shows what came while somebody watched: not what a device already showed when the agent began. It shows
/// the newest ``maximumShown`` at most, so that a device that was away does not bury the screen.
struct DesktopPlan: Sendable {
    /// What is to be done.
    enum Order: Hashable, Sendable {
        /// Show a notification; the desktop's answer goes to ``shown(_:as:)`` or ``notShown(_:)`` with its identifier.
        case show(String, DesktopNotice, replacing: UInt32)
        /// Take a notification from the desktop.
        case close(UInt32)
    }

    /// Why the desktop closed a notification (`NotificationClosed`).
    enum Closing: UInt32, Sendable {
        case expired = 1
        case dismissed = 2
        case asked = 3
    }

    /// The files that the desktop reads, which are the app's.
    struct Files: Hashable, Sendable {
        var icons: [Topic: String] = [:]
        /// By the identifier of the sound in the snapshot.
        var sounds: [String: String] = [:]
    }

    /// How many notifications of the device the desktop shows at once.
    static let maximumShown = 20

    private struct Entry: Sendable {
        var notification: PhoneSnapshot.Notification
        /// The desktop's number for it; nil until it has said so.
        var number: UInt32?
        /// Whether the desktop has not said yet that it shows it.
        var isAsked = true
        /// Whether it is to be taken away as soon as its number is known.
        var isUnwanted = false
        /// Whether the user has answered it here: what the desktop says after that is no second answer.
        var isAnswered = false
    }

    private enum Service: Sendable {
        /// It was asked what it can do; what comes meanwhile is shown when it has answered.
        case awaited
        case absent
        case present(capabilities: Set<String>)
    }

    /// When it began, in UNIX seconds.
    private let start: Double
    private var service = Service.awaited
    /// What was in the last snapshot.
    private var known: Set<String> = []
    private var heard: Set<String> = []
    /// What the desktop shows, or was asked to; oldest first.
    private var entries: [Entry] = []
    /// How the device looked while the service was awaited.
    private var last: (snapshot: PhoneSnapshot, files: Files)?

    /// A desktop that shows what comes from now on.
    init(start: Double) {
        self.start = start
    }

    // What the device does.

    /// The device looks like this now.
    mutating func see(_ snapshot: PhoneSnapshot, files: Files) -> [Order] {
        if case .awaited = service {
            last = (snapshot, files)
            return []
        }
        let here = Set(snapshot.notifications.map(\.id))
        // Newest first, as in the snapshot.
        let fresh = snapshot.notifications.filter { !known.contains($0.id) && $0.time >= start }
        let sounds = soundsByNotification(snapshot, fresh)
        known = here
        heard = Set(snapshot.sounds.map(\.id))
        var gone = entries.filter { !here.contains($0.notification.id) && !$0.isUnwanted }.map(\.notification)
        var orders: [Order] = []
        if case .present(let capabilities) = service {
            // A desktop that does not answer is asked for no more.
            let room = max(0, Self.maximumShown - entries.count(where: \.isAsked))
            for notification in fresh.prefix(room).reversed() {
                let sound: DesktopNotice.Sound =
                    switch sounds[notification.id] {
                    case nil: .none
                    case let sound?: files.sounds[sound].map { .file($0) } ?? .standard
                    }
                let notice = DesktopNotice(
                    notification,
                    icon: files.icons[notification.topic],
                    sound: sound,
                    capabilities: capabilities
                )
                orders.append(.show(notification.id, notice, replacing: place(for: notification, &gone)))
            }
        }
        for notification in gone { orders += takeAway(notification.id) }
        if entries.count > Self.maximumShown {
            for entry in entries.prefix(entries.count - Self.maximumShown) { orders += takeAway(entry.notification.id) }
        }
        return orders
    }

    // What the desktop says.

    /// A notification service is there, and can do this.
    mutating func serviceCame(_ capabilities: Set<String>) -> [Order] {
        service = .present(capabilities: capabilities)
        return catchUp()
    }

    /// Another notification service is there, and was asked what it can do; what the one before showed is gone.
    mutating func serviceIsAwaited() {
        service = .awaited
        entries = []
    }

    /// There is no notification service; what it showed is gone.
    mutating func serviceWent() {
        service = .absent
        entries = []
        _ = catchUp()
    }

    private mutating func catchUp() -> [Order] {
        defer { last = nil }
        return last.map { see($0.snapshot, files: $0.files) } ?? []
    }

    /// The desktop shows a notification, under this number.
    mutating func shown(_ id: String, as number: UInt32) -> [Order] {
        guard let index = entries.firstIndex(where: { $0.notification.id == id }) else { return [.close(number)] }
        entries[index].number = number
        entries[index].isAsked = false
        guard entries[index].isUnwanted else { return [] }
        entries.remove(at: index)
        return [.close(number)]
    }

    /// The desktop does not show a notification.
    mutating func notShown(_ id: String) {
        entries.removeAll { $0.notification.id == id }
    }

    /// The user clicked on a notification, or on one of its buttons: what that does on the device.
    mutating func invoked(_ number: UInt32, key: String) -> PhoneAction? {
        guard let index = entries.firstIndex(where: { $0.number == number }), !entries[index].isAnswered,
            let action = DesktopNotice.action(key, of: entries[index].notification)
        else { return nil }
        entries[index].isAnswered = true
        return action
    }

    /// The desktop shows a notification no more: what that does on the device.
    ///
    /// One that it took away by itself stays on the device.
    mutating func closed(_ number: UInt32, _ reason: Closing?) -> PhoneAction? {
        guard let index = entries.firstIndex(where: { $0.number == number }) else { return nil }
        let entry = entries.remove(at: index)
        return reason == .dismissed && !entry.isAnswered ? .close(id: entry.notification.id) : nil
    }

    /// The agent ends: what is shown would answer to nobody.
    mutating func end() -> [Order] {
        defer { entries = [] }
        return entries.compactMap { $0.number.map { .close($0) } }
    }

    // Details.

    /// Makes an entry for a notification, in the place of what it replaces; the number of that place, or 0.
    ///
    /// A notification that replaces another has a new identifier, and the other is gone. Of several that went meanwhile,
    /// any serves: each of them goes.
    private mutating func place(
        for notification: PhoneSnapshot.Notification,
        _ gone: inout [PhoneSnapshot.Notification]
    ) -> UInt32 {
        guard notification.replaced,
            let index = entries.lastIndex(where: { entry in
                entry.number != nil && !entry.isAnswered && entry.notification.topic == notification.topic
                    && gone.contains { $0.id == entry.notification.id }
            })
        else {
            entries.append(Entry(notification: notification))
            return 0
        }
        let old = entries.remove(at: index)
        gone.removeAll { $0.id == old.notification.id }
        entries.append(Entry(notification: notification, number: old.number))
        return old.number ?? 0
    }

    private mutating func takeAway(_ id: String) -> [Order] {
        guard let index = entries.firstIndex(where: { $0.notification.id == id }) else { return [] }
        guard let number = entries[index].number else {
            entries[index].isUnwanted = true
            return []
        }
        entries.remove(at: index)
        return [.close(number)]
    }

    /// Which of the sounds that are new belongs to which new notification: that of the same app before it.
    private func soundsByNotification(
        _ snapshot: PhoneSnapshot,
        _ fresh: [PhoneSnapshot.Notification]
    ) -> [String: String] {
        var owners: [String: String] = [:]
        for sound in snapshot.sounds.reversed() where !heard.contains(sound.id) {
            let owner = fresh.first { owners[$0.id] == nil && $0.topic == sound.topic && $0.time <= sound.time }
            if let owner { owners[owner.id] = sound.id }
        }
        return owners
    }
}
