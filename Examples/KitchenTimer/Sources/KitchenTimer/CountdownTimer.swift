/// A timer of the family.
struct CountdownTimer: Codable, Hashable, Sendable {
    /// Its identifier, and that of its notification: made once, by the device that started it, of a–z, 0–9 and `-`.
    var id: String
    /// The name, for people.
    var name: String
    /// The time at which it rings, in UNIX seconds.
    var ends: Double
    /// Whether somebody stopped it.
    var isStopped = false
    /// The number of changes, up to ``KitchenLimits/revisions``; of two versions, the one with more changes counts.
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

    /// Counts a change.
    mutating func revise() {
        revision = revision < KitchenLimits.revisions ? revision + 1 : KitchenLimits.revisions
    }

    /// Checks a timer that comes from elsewhere.
    /// - Throws: ``KitchenRefusal`` if no app makes such a timer.
    func check() throws {
        guard (1...KitchenLimits.idBytes).contains(id.utf8.count), id.utf8.allSatisfy(Self.isPartOfID) else {
            throw KitchenRefusal(
                "\"id\" of a timer must be 1 to \(KitchenLimits.idBytes) characters of a to z, 0 to 9 and -"
            )
        }
        try Self.check(name: name)
        guard (0...KitchenLimits.revisions).contains(revision) else {
            throw KitchenRefusal("\"revision\" of a timer must be from 0 to \(KitchenLimits.revisions)")
        }
    }

    /// Checks the name of a timer.
    /// - Throws: ``KitchenRefusal``.
    static func check(name: String) throws {
        guard (1...KitchenLimits.nameBytes).contains(name.utf8.count),
            name.unicodeScalars.allSatisfy({ $0.properties.generalCategory != .control })
        else {
            throw KitchenRefusal("\"name\" must be a text of at most \(KitchenLimits.nameBytes) bytes, on one line")
        }
    }

    private static func isPartOfID(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"): true
        default: false
        }
    }
}

/// The limits of the kitchen timer.
enum KitchenLimits {
    /// The most timers; a device keeps 64 pending notifications of an app.
    static let timers = 50
    /// The longest identifier of a timer, in bytes: that of a local notification.
    static let idBytes = 64
    /// The most changes of a timer that count: nobody makes so many in two days, and the number can be counted up.
    static let revisions = 1_000_000
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
