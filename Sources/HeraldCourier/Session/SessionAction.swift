import HeraldMailbox
import HeraldModel
import HeraldWire

/// What a ``SessionMachine`` wants done; in this order.
enum SessionAction: Hashable, Sendable {
    /// Ask the registry; the answer comes back with ``SessionMachine/completed(_:now:)``. One request at a time.
    case request(SessionRequest)
    /// The session is open: tell the post office of the connection.
    case attach(SessionTerms)
    case send(MQTTPacket)
    /// A device token for the app, as a message of its own.
    case sendToken(AppNumber, DeviceToken, qualityOfService: UInt8)
    /// The device wants the app's notifications on this connection.
    case open(AppNumber, qualityOfService: UInt8)
    /// The device no longer wants them; what it has been handed may still go out.
    case close(AppNumber)
    /// The app is removed: what waits for it does not go out.
    case forget(AppNumber)
    /// The device wants the channel's broadcasts on this connection; `acknowledged` is the number of the newest that the
    /// session has had.
    case openChannel(ChannelFilter, qualityOfService: UInt8, acknowledged: UInt64)
    case closeChannel(ChannelFilter)
    case setSavingPower(Bool)
    /// The connection is over: send what is written, and close it.
    case end
    /// The connection is gone, and so is its claim on the device.
    case depart(SessionDeparture)
    /// Something that an operator may want to know of; never holds anything that the device sent.
    case log(SessionNote)
}

/// What a session asks the registry to do.
enum SessionRequest: Hashable, Sendable {
    /// Let the device in.
    case arrive
    /// Register these apps, or find that they are.
    case register([App])
    /// Remove these apps.
    case unregister([App])
    /// Keep the session, or drop it.
    case keep(SessionRecord?)
    /// Which of these channels there are.
    case findChannels([CourierFilter])
    case setEnabled(Bool, App)
    case setSavingPower(Bool)
    /// Look at tokens that the device presents; those for an app of another environment, or other than the topic's,
    /// where one is given, are stale.
    case examine([DeviceToken], for: Topic?, in: PushEnvironment)
}

/// What became of a ``SessionRequest``.
enum SessionResult: Hashable, Sendable {
    case arrived(SessionArrival)
    /// For each app in its order; nil where the registry failed, or refused another app.
    case registered([RegisteredApp?], refused: Set<App> = [])
    /// For each app in its order, whether a registration stood; nil where the registry failed.
    case unregistered([Bool?])
    case foundChannels(Set<CourierFilter>)
    case done
    /// Nothing to do it to: the app is not registered.
    case notRegistered
    case examined([PresentedToken])
    /// The registry failed, or refused: the same may work later.
    case failed
    /// The device was let in too often within a short time.
    case tooManyTakeovers
}

/// A device that the registry let in.
struct SessionArrival: Hashable, Sendable {
    var device: DeviceNumber
    /// Tells this connection from every earlier one.
    var fence: UInt64
    var record: DeviceRecord
    /// Those apps among the record's subscriptions that are registered: in this connection's environment, or in the one
    /// that the record names for them.
    var apps: [RegisteredApp]
    /// The key under which their tokens are sealed.
    var tokenKey: UInt32 = 0
}

/// An app that is registered on the device.
struct RegisteredApp: Hashable, Sendable {
    var topic: Topic
    var number: AppNumber
    /// nil where the device is not to be sent it.
    var token: DeviceToken?
}

/// What a presented token turned out to be.
enum PresentedToken: Hashable, Sendable {
    /// Of this device, and in force; for this app.
    case current(AppNumber)
    /// Of this device, for this app; not in force, or not what was asked for.
    case stale(AppNumber)
    /// Of this device, and good; but sealed under an older key than a new one would be.
    case outdated(AppNumber)
    /// Forged, or of another device.
    case foreign
}

/// What both sides have agreed on when a session opens.
struct SessionTerms: Hashable, Sendable {
    var device: DeviceNumber
    var fence: UInt64
    var isSavingPower: Bool
    /// Notifications that may be sent before one is acknowledged.
    var window: Int
    /// Bytes of the largest packet that the device accepts.
    var maximumPacketSize: Int
    /// Seconds of silence after which the connection is closed.
    var longestSilence: Double
    /// Whether the device resumes a session: what it did not acknowledge on its last connection is marked as sent again.
    var isResumed: Bool
    /// What the session has had of its channels: filter → number.
    var broadcasts: [String: UInt64] = [:]
}

/// What is left to do once a connection of a device that was let in is gone.
struct SessionDeparture: Hashable, Sendable {
    /// What becomes of the stored session.
    enum Record: Hashable, Sendable {
        /// Nothing: there is none, or it is a newer connection's already.
        case untouched
        case keep(SessionRecord)
        case drop
    }

    var device: DeviceNumber
    var fence: UInt64
    var record: Record
}

/// A refusal or an end, for the log.
enum SessionNote: String, Hashable, Sendable {
    case wrongClientIdentifier = "device refused: its client identifier is not that of its certificate"
    case unavailable = "device refused: the registry is not available"
    case tooManyTakeovers = "device refused: two connections with its certificate keep evicting each other"
    case foreignToken = "device disconnected: it presented a token that is not its own"
    case malformed = "device disconnected: it sent bytes that are no MQTT"
    case protocolError = "device disconnected: it broke the protocol"
    case silent = "device disconnected: silent for longer than its keep alive"
}
