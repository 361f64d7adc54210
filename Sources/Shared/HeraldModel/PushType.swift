/// The kind of a notification, as `apns-push-type` names it ("Sending notification requests to APNs").
public enum PushType: String, Hashable, Sendable, CaseIterable, Codable {
    /// Visible to the user: an alert, a sound or a badge.
    case alert
    /// Silent; wakes the app for some seconds. Its priority is never 10.
    case background
    /// Data for a watch face.
    case complication
    /// Reloads controls.
    case controls
    /// Signals changes to a file provider extension.
    case fileprovider
    /// Starts, updates or ends a Live Activity.
    case liveactivity
    /// Asks a location push extension for the device's location.
    case location
    /// Calls a managed device to its management server.
    case mdm
    /// Wakes a push-to-talk session.
    case pushtotalk
    /// An incoming call.
    case voip
    /// Reloads widgets.
    case widgets

    /// The topic suffix of this push type; empty where the topic is the bundle identifier alone.
    public var topicSuffix: String {
        switch self {
        case .alert, .background, .mdm: ""
        case .complication: ".complication"
        case .controls: ".push-type.controls"
        case .fileprovider: ".pushkit.fileprovider"
        case .liveactivity: ".push-type.liveactivity"
        case .location: ".location-query"
        case .pushtotalk: ".voip-ptt"
        case .voip: ".voip"
        case .widgets: ".push-type.widgets"
        }
    }

    /// The longest payload over HTTP/2, in bytes: 5,120 for ``voip``, 4,096 for every other kind ("Generating a remote
    /// notification").
    public var maximumPayloadBytes: Int {
        self == .voip ? 5120 : 4096
    }
}

/// How urgent a notification is (`apns-priority`).
public enum Priority: UInt8, Hashable, Sendable, CaseIterable, Codable {
    /// At once; the default.
    case immediate = 10
    /// Considering the device's power.
    case conserving = 5
    /// The device's power above everything; never wakes it.
    case low = 1
}

/// How long a notification may wait for its device (`apns-expiration`).
public enum Expiration: Hashable, Sendable {
    /// No header: kept as long as the service keeps anything (30 days unless configured).
    case unspecified
    /// Zero: one attempt, never stored.
    case once
    /// Kept until then. A moment that has passed means one attempt, never stored.
    case at(WallTime)

    /// The rule of the header's value, for refusals.
    package static let rule = "a whole number of seconds since 1970, of 18 digits at most, or 0 for one attempt"

    /// Reads the header's value: UNIX seconds, UTC, in decimal digits.
    ///
    /// - Returns: nil if it is not a whole number; negative ones are not accepted.
    public init?(_ text: some StringProtocol) {
        var text = String(text)
        let expiration = text.withUTF8 { Expiration(utf8: UnsafeRawBufferPointer($0)) }
        guard let expiration else { return nil }
        self = expiration
    }

    /// Reads the header's value from its bytes: 1 to 18 digits, which always fit into 64 bits.
    package init?(utf8 bytes: UnsafeRawBufferPointer) {
        guard (1...18).contains(bytes.count) else { return nil }
        var seconds: Int64 = 0
        for byte in bytes {
            guard (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) else { return nil }
            seconds = seconds * 10 + Int64(byte - UInt8(ascii: "0"))
        }
        self = seconds == 0 ? .once : .at(WallTime(seconds: seconds))
    }

    /// The end of the storage of a notification that came at `now`, in a service that stores for `longest` at most.
    /// - Returns: nil if it is not to be stored at all.
    package func storedUntil(now: WallTime, longest: Duration) -> WallTime? {
        switch self {
        case .unspecified: now + longest
        case .once: nil
        case .at(let moment): moment <= now ? nil : min(moment, now + longest)
        }
    }
}
