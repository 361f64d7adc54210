import Foundation
import HeraldDevice
import HeraldModel

/// The local notifications that are not due yet: when each is due, and what a change of clock or time zone means for them.
struct PendingNotifications: Codable, Hashable, Sendable {
    private(set) var all: [PendingNotification] = []
    /// The time zone for which the moments of the calendar are computed.
    private(set) var zone = "GMT"

    /// The pending notifications of an app, or of all apps; the next one first.
    func list(of topic: Topic?) -> [PendingNotification] {
        all.filter { topic == nil || $0.topic == topic }.sorted(by: Self.isBefore)
    }

    /// The next time at which one is due, in UNIX seconds.
    var next: Double? { all.map(\.next).min() }

    // MARK: - Changes by the app

    /// Adds a notification in place of the pending one with its identifier.
    /// - Throws: ``DeviceError/Code/notPossible`` if its moment is past, or too many are pending.
    mutating func schedule(
        _ notification: LocalNotification,
        of topic: Topic,
        _ now: WallTime,
        in zone: TimeZone,
        limits: PhoneLimits
    ) throws {
        let due: WallTime? =
            switch notification.trigger {
            case .after(let time): now + time
            case .at(let moment): moment.moment(in: zone)
            case .every(let rule): rule.next(after: now, in: zone)
            }
        guard let due, due > now else {
            let shown = "\(LocalTime(now, in: zone)) (\(zone.identifier))"
            throw DeviceError(.notPossible, "its time is past: the device's clock shows \(shown)")
        }
        let others = all.filter { $0.topic != topic || $0.notification.id != notification.id }
        let ofApp = others.count { $0.topic == topic }
        guard ofApp < limits.pendingNotifications else {
            throw DeviceError(
                .notPossible,
                "\(topic) already has \(ofApp) pending local notifications, the most that an app may have: cancel one first"
            )
        }
        guard others.count < limits.allPendingNotifications else {
            throw DeviceError(
                .notPossible,
                "the apps of this device already have \(others.count) pending local notifications: cancel some first"
            )
        }
        all = others + [PendingNotification(topic: topic, notification: notification, next: due.unixSeconds)]
    }

    /// Cancels the notification with an identifier, or all of the app.
    /// - Returns: The number of notifications that were pending.
    mutating func cancel(_ id: String?, of topic: Topic) -> Int {
        let before = all.count
        all.removeAll { $0.topic == topic && (id == nil || $0.notification.id == id) }
        return before - all.count
    }

    // MARK: - Time

    /// Takes the notifications that are due, the earliest first.
    ///
    /// A repeating one is due once, however often it was missed, and then again at its next moment.
    mutating func takeDue(_ now: WallTime, in zone: TimeZone) -> [PendingNotification] {
        let due = all.filter { $0.next <= now.unixSeconds }.sorted(by: Self.isBefore)
        guard !due.isEmpty else { return [] }
        all = all.compactMap { $0.next <= now.unixSeconds ? Self.following($0, now, zone) : $0 }
        return due
    }

    private static func following(
        _ past: PendingNotification,
        _ now: WallTime,
        _ zone: TimeZone
    ) -> PendingNotification? {
        guard case .every(let rule) = past.notification.trigger else { return nil }
        var pending = past
        if let interval = rule.interval {
            let seconds = Double(interval.wholeMilliseconds) / 1000
            pending.next += seconds * (((now.unixSeconds - past.next) / seconds).rounded(.down) + 1)
        } else {
            guard let next = rule.next(after: now, in: zone) else { return nil }
            pending.next = next.unixSeconds
        }
        return pending
    }

    /// Computes the moments of the calendar again for another time zone; intervals continue.
    mutating func move(to zone: TimeZone, named name: String, _ now: WallTime) {
        guard name != self.zone else { return }
        self.zone = name
        for index in all.indices {
            switch all[index].notification.trigger {
            case .after: break
            case .at(let moment): all[index].next = moment.moment(in: zone).unixSeconds
            case .every(let rule) where rule.interval == nil:
                all[index].next = rule.next(after: now, in: zone)?.unixSeconds ?? all[index].next
            case .every: break
            }
        }
    }

    /// Follows a clock that was set back: what is left of an interval remains, and rules of the calendar count from now.
    mutating func clockWentBack(by seconds: Double, _ now: WallTime, in zone: TimeZone) {
        for index in all.indices {
            switch all[index].notification.trigger {
            case .after: all[index].next -= seconds
            case .at: break
            case .every(let rule):
                all[index].next =
                    rule.interval == nil
                    ? rule.next(after: now, in: zone)?.unixSeconds ?? all[index].next : all[index].next - seconds
            }
        }
    }

    private static func isBefore(_ one: PendingNotification, _ other: PendingNotification) -> Bool {
        (one.next, one.topic.name, one.notification.id) < (other.next, other.topic.name, other.notification.id)
    }
}
