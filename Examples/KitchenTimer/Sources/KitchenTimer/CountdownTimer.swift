/// A timer of the family.
struct CountdownTimer: Codable, Hashable, Sendable {
    /// Its identifier, and that of its notification: made once, by the device that started it.
    var id: String
    /// The name, for people.
    var name: String
    /// The time at which it rings, in UNIX seconds.
    var ends: Double
    /// Whether somebody stopped it.
    var isStopped = false
    /// The number of changes; of two versions, the one with more changes counts.
    var revision = 0

    /// Whether it still has to ring.
    func runs(at now: Double) -> Bool { !isStopped && ends > now }

    /// Whether this version wins over another one of the same timer; the order is total, so all devices agree.
    func wins(over other: CountdownTimer) -> Bool {
        if revision != other.revision { return revision > other.revision }
        if isStopped != other.isStopped { return isStopped }
        if ends != other.ends { return ends > other.ends }
        return name > other.name
    }
}

/// The limits of the kitchen timer.
enum KitchenLimits {
    /// The most timers; a device keeps 64 pending notifications of an app.
    static let timers = 50
    /// The longest name, in bytes of UTF-8.
    static let nameBytes = 64
    /// The longest time of a timer: a day, in seconds.
    static let seconds = 86_400.0
    /// How long a timer is kept after its end, in seconds: a day.
    static let keptSeconds = 86_400.0
    /// The time that the button "5 more minutes" adds, in seconds.
    static let moreSeconds = 300.0
    /// The most devices of a family.
    static let devices = 20
    /// The longest HTTP body, in bytes.
    static let bodyBytes = 65_536
    /// The pause before the app tries again to reach its server or its device.
    static let retry = Duration.seconds(2)
    /// The time limit of a request to the family's server.
    static let requestSeconds: Int64 = 10
}
