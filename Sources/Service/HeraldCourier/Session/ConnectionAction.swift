import HeraldMailbox
import HeraldModel
import HeraldWire

/// An action that an ``MQTTConnectionMachine`` decides on; a list of them is performed in order.
enum ConnectionAction: Hashable, Sendable {
    /// Ask the registry; ``MQTTConnectionMachine/completed(_:now:)`` takes the answer. One request at a time.
    case request(RegistryRequest)
    /// The session is open: attach the connection to the post office.
    case attach(SessionTerms)
    case send(MQTTPacket)
    /// Send a device token, as a message of its own.
    case sendToken(AppNumber, DeviceToken, qualityOfService: UInt8)
    /// Send what the service announces, if it is newer than a version.
    case announce(qualityOfService: UInt8, after: Int64)
    /// Note the version of the announcement that the device has.
    case noteAnnouncement(Int64)
    /// Deliver the app's notifications on this connection.
    case open(AppNumber, qualityOfService: UInt8)
    /// Stop delivering them; those handed over may still be sent.
    case close(AppNumber)
    /// Deliver none of the app's notifications until the device has presented its token.
    case withhold(AppNumber)
    /// The apps are removed: send nothing more for them.
    case remove([AppNumber])
    /// Deliver the channel's broadcasts on this connection, after the `acknowledged` one.
    case openChannel(ChannelFilter, qualityOfService: UInt8, acknowledged: UInt64)
    case closeChannels([ChannelFilter])
    case setSavingPower(Bool)
    /// The connection is over: send what is written, and close it.
    case end
    /// The connection is gone: release its claim on the device.
    case release(DeviceClaim)
    /// Log a refusal or an end.
    case log(ConnectionFault)
    case logRefusedTopic(RefusedTopic)
    /// Log and count the number of apps whose notifications wait, because the device has not presented their tokens.
    case reportMissingTokens(apps: Int)
}

/// A request of a session to the registry.
enum RegistryRequest: Hashable, Sendable {
    /// Admit the device.
    case admit
    /// Register these apps, or confirm that they are registered.
    case register([App])
    /// Remove these apps.
    case unregister([App])
    /// Take the device's session over: store it, or delete it with nil, in place of the record of the admission.
    ///
    /// The answer is another admission, with the present record, if that is a different one.
    case begin(SessionRecord?, replacing: DeviceRecord)
    /// Store the session, or delete it with nil.
    case keep(SessionRecord?)
    /// Find which of these channels exist.
    case findChannels([CourierFilter])
    case setEnabled(Bool, App)
    case setSavingPower(Bool)
    /// Examine tokens that the device presents. A token is stale if its app is in another environment, or is not the
    /// topic's where one is given.
    case examine([DeviceToken], for: Topic?, in: PushEnvironment)
}

/// The answer to a ``RegistryRequest``.
enum RegistryAnswer: Hashable, Sendable {
    case admitted(AdmittedDevice)
    /// For each app in its order; nil where the registry failed or refused it.
    case registered([RegisteredApp?], refused: [App: RegistrationRefusal] = [:])
    /// For each app in its order, whether it was registered; nil where the registry failed.
    case unregistered([Bool?])
    case foundChannels(Set<CourierFilter>)
    case done
    /// The app is not registered.
    case notRegistered
    case examined([PresentedToken])
    /// The registry failed, or refused: the same may work later.
    case failed
    /// The device took over from itself too often within a short time.
    case tooManyTakeovers
    /// Too many devices arrive at once.
    case busy
}

/// A device that the registry admitted.
struct AdmittedDevice: Hashable, Sendable {
    var device: DeviceNumber
    /// Tells this connection from every earlier one.
    var fence: UInt64
    var record: DeviceRecord
    /// The apps of the record's subscriptions that are registered: in this connection's environment, or in the one that
    /// the record names.
    var apps: [RegisteredApp]
    /// The key under which their tokens are sealed.
    var tokenKey: UInt32 = 0
}

/// An app that is registered on the device.
struct RegisteredApp: Hashable, Sendable {
    var topic: Topic
    var number: AppNumber
    /// Nil where the device is not to be sent it.
    var token: DeviceToken?
}

/// The result of examining a presented token.
enum PresentedToken: Hashable, Sendable {
    /// The device's, and in force; for this app.
    case current(AppNumber)
    /// The device's, for this app; not in force, or for another topic than the packet's.
    case stale(AppNumber)
    /// The device's, and good; but sealed under an older key than a new one would be.
    case outdated(AppNumber)
    /// Forged, or another device's.
    case foreign

    /// Whether providers can send to the device with it.
    var isGood: Bool {
        switch self {
        case .current, .outdated: true
        case .stale, .foreign: false
        }
    }
}

/// The terms that CONNECT and CONNACK agree on.
struct SessionTerms: Hashable, Sendable {
    var device: DeviceNumber
    var fence: UInt64
    var isSavingPower: Bool
    /// The most messages in flight to the device.
    var window: Int
    /// Bytes of the largest packet that the device accepts.
    var maximumPacketSize: Int
    /// Seconds without a packet after which the connection is closed.
    var keepAliveTimeout: Double
    /// Time in which the device has to present its tokens; nil if they are not required.
    var tokenGrace: Duration?
    /// Whether the device resumes a session: what it did not acknowledge on its last connection is sent as a duplicate.
    var isResumed: Bool
    /// The newest acknowledged broadcast of each channel: filter → number.
    var broadcasts: [String: UInt64] = [:]
}

/// The claim of a connection on its device: given by the registry, and released when the connection is gone.
struct DeviceClaim: Hashable, Sendable {
    /// The stored session after the release.
    enum Session: Hashable, Sendable {
        /// There is none, or it is a newer connection's already.
        case unchanged
        // Out of line, because every connection has a claim, and only one that closes has a record in it.
        indirect case keep(SessionRecord)
        case drop
    }

    var device: DeviceNumber
    var fence: UInt64
    var session: Session
}

/// A refusal or an end, for the log; it holds nothing that the device sent.
enum ConnectionFault: String, Hashable, Sendable {
    case wrongClientIdentifier = "device refused: its client identifier is not that of its certificate"
    case unavailable = "device refused: the registry is not available"
    case busy = "device refused: it has waited for its turn, since too many devices arrive at once"
    case tooManyTakeovers = "device refused: two connections with its certificate keep replacing each other"
    case foreignToken = "device disconnected: it presented a token that is not its own"
    case malformed = "device disconnected: it sent bytes that are not MQTT"
    case protocolError = "device disconnected: it violated the protocol"
    case queueFull = "device disconnected: it does not acknowledge, and too many messages wait for it"
    case keepAliveTimeout = "device disconnected: it sent nothing for one and a half keep-alives"
}

/// A topic filter, a topic or a payload outside the device contract, for the log.
enum RefusedTopic: Hashable, Sendable {
    case subscribe(String)
    case publish(String)
    /// A payload that is not understood, by its topic, with what is wrong; nothing of the payload.
    case payload(String, String)

    static let allowedFilters =
        "apps/<topic>, apps/<topic>/token, apps/<topic>/#, channels/<bundle id>/<channel id> and device/service"
    static let allowedTopics = "apps/<topic>/settings, apps/<topic>/token, device/power and device/service"
}
