import HeraldDevice
import HeraldJSON
import HeraldModel

/// The Live Activities on the screen, newest first.
struct LiveActivities: Codable, Hashable, Sendable {
    private(set) var all: [PhoneState.Activity] = []

    /// The `timestamp` of the activity that a payload changes; nil if there is none.
    func timestamp(of app: Topic, payload: [UInt8], channel: String?) -> Double? {
        Self.aps(payload).flatMap { index(of: app, $0, channel: channel) }.map { all[$0].timestamp }
    }

    private static func aps(_ payload: [UInt8]) -> JSON.Object? {
        JSON.Object(payload, rules: .payload)?["aps"]?.members
    }

    /// The activity with the attributes that the payload names, else the app's newest; of a broadcast, one that the channel
    /// changes goes before others.
    private func index(of app: Topic, _ aps: JSON.Object, channel: String?) -> Int? {
        func isMeant(_ one: PhoneState.Activity) -> Bool {
            one.app == app && (aps["attributes"] == nil || one.view.attributes == aps["attributes"])
        }
        return channel.flatMap { channel in all.firstIndex { $0.channel == channel && isMeant($0) } }
            ?? all.firstIndex(where: isMeant)
    }

    /// The channel of an app's newest activity.
    func newestChannel(of app: Topic) -> DeviceChannel? {
        all.first { $0.app == app }?.channel.flatMap { DeviceChannel($0, of: app) }
    }

    /// Starts, updates or ends an activity.
    mutating func apply(
        _ presentation: Presentation,
        app: Topic,
        payload: [UInt8],
        channel: String?,
        now: Double,
        limit: Int,
        start: (_ content: JSON, _ attributes: JSON) -> PhoneSnapshot.Activity
    ) {
        guard let change = presentation.activity, let aps = Self.aps(payload) else { return }
        let existing = index(of: app, aps, channel: channel)
        var activity: PhoneState.Activity
        if change.event == "start" {
            let view = start(change.contentState ?? .object([:]), aps["attributes"] ?? .object([:]))
            activity = PhoneState.Activity(view: view, app: app, timestamp: 0)
            activity.channel = aps["input-push-channel"]?.text.flatMap { DeviceChannel($0, of: app)?.id }
        } else if let existing {
            activity = all[existing]
        } else {
            return
        }
        if let existing { all.remove(at: existing) }
        guard change.state != .dismissed else { return }
        activity.timestamp = aps["timestamp"]?.time ?? now
        activity.view.state = change.state
        activity.view.content = change.contentState ?? activity.view.content
        activity.view.title = presentation.alert?.title ?? activity.view.title
        activity.view.body = presentation.alert?.body ?? activity.view.body
        activity.view.staleDate = change.staleDate
        activity.view.dismissalDate = change.dismissalDate
        all.insert(activity, at: 0)
        if all.count > limit { all.removeLast() }
    }

    mutating func removeAll(of app: Topic) {
        all.removeAll { $0.app == app }
    }

    /// The next time at which ``tick(_:)`` changes something, in UNIX seconds.
    var nextTick: Double? {
        all.flatMap { activity -> [Double] in
            let stale = activity.view.state == .active ? activity.view.staleDate : nil
            return [stale, activity.view.dismissalDate].compactMap { $0 }
        }
        .min()
    }

    /// Marks activities as outdated, and removes dismissed ones.
    /// - Returns: Lines for the log.
    mutating func tick(_ now: Double) -> [String] {
        var lines: [String] = []
        for index in all.indices where all[index].view.state == .active {
            guard let date = all[index].view.staleDate, date <= now else { continue }
            all[index].view.state = .stale
            lines.append("a Live Activity of \(all[index].view.app) is outdated")
        }
        func isOver(_ activity: PhoneState.Activity) -> Bool { activity.view.dismissalDate.map { $0 <= now } ?? false }
        lines += all.filter(isOver).map { "a Live Activity of \($0.view.app) was removed" }
        all.removeAll(where: isOver)
        return lines
    }
}
