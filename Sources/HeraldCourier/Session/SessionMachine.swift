import HeraldMailbox
import HeraldModel
import HeraldWire
import Synchronization

/// Decides about one connection of a device: packets and events go in, actions come out.
///
/// It goes from `connecting` (no CONNECT yet) over `arriving` (the registry is asked) to `open`, and from each of them to
/// `closed`. It knows no socket, clock, database or lock, and holds what the peer makes it hold within limits.
///
/// 1. Refuses whom it must, in CONNACK or DISCONNECT, with the reason code of the standard (3.1.1: by closing).
/// 2. Opens the session: new, or as it was kept.
/// 3. Carries out SUBSCRIBE, UNSUBSCRIBE and PUBLISH one after the other, so that they are answered in order.
/// 4. Says what is to be kept of the session in the end.
///
/// The window of what is in flight to the device is a ``DeliveryWindow``, beside it.
struct SessionMachine {
    /// What passes quickly is out of line, so that an open session pays for itself only.
    enum Phase {
        case connecting
        indirect case arriving(MQTTConnect)
        /// The session's record is being stored before CONNACK says what it holds.
        ///
        /// Behind the terms are the apps whose tokens are to be sent.
        indirect case keeping(MQTTConnect, OpenSession, SessionTerms, [RegisteredApp])
        case open(OpenSession)
        case closed
    }

    let device: DeviceID
    let environment: PushEnvironment
    let limits: SessionLimits
    var phase = Phase.connecting
    /// The device and fence that the registry gave, until they have been given back.
    private(set) var claim: SessionDeparture?
    /// Whether the connection is gone.
    private var isGone = false

    init(device: DeviceID, environment: PushEnvironment, limits: SessionLimits) {
        self.device = device
        self.environment = environment
        self.limits = limits
    }

    /// Whether another packet may be given to ``received(_:)``.
    var canReceive: Bool {
        switch phase {
        case .connecting: true
        case .open(let session): session.waiting.count < limits.configuration.waitingOperations
        case .arriving, .keeping, .closed: false
        }
    }

    var isConnecting: Bool {
        if case .connecting = phase { true } else { false }
    }

    var isOpen: Bool {
        if case .open = phase { true } else { false }
    }

    /// Whether the session outlives the connection, and with it what is in flight.
    var keepsSession: Bool {
        if case .open(let session) = phase { session.expiryInterval > 0 } else { false }
    }

    var isClosed: Bool {
        if case .closed = phase { true } else { false }
    }

    /// A packet has come.
    ///
    /// Only while ``canReceive`` says so; else it is ignored.
    mutating func received(_ packet: MQTTPacket) -> [SessionAction] {
        switch phase {
        case .connecting:
            guard case .connect(let connect) = packet else { return close(.protocolError, note: .protocolError) }
            return receivedConnect(connect)
        case .open(var session):
            // Taken out of the phase while it changes, so that it is changed in place.
            phase = .closed
            let reaction = session.received(packet, limits.configuration)
            phase = .open(session)
            return perform(reaction)
        case .arriving, .keeping, .closed:
            return []
        }
    }

    /// The bytes that came are no packet ([MQTT-4.13.1-1]).
    ///
    /// `version` is the one in which a CONNECT can be refused, nil if the peer has shown none.
    mutating func failed(_ error: MQTTError, refusalVersion version: MQTTVersion?) -> [SessionAction] {
        let note: SessionNote = error.code == .malformedPacket ? .malformed : .protocolError
        guard case .connecting = phase else { return close(error.code, error.message, note: note) }
        phase = .closed
        // 3.1.1 has a return code for a wrong version only; all else ends without CONNACK (its [MQTT-3.1.4-1]).
        guard let version, version == .v5 || error.code == .unsupportedProtocolVersion else {
            return [.log(note), .end]
        }
        let code = error.code.isAllowed(in: .connack) ? error.code : .protocolError
        return [.log(note), .send(.connack(MQTTConnack(reasonCode: code))), .end]
    }

    /// What was asked of the registry is done, or has failed.
    mutating func completed(_ result: SessionResult, now: WallTime) -> [SessionAction] {
        if case .arrived(let arrival) = result {
            claim = SessionDeparture(device: arrival.device, fence: arrival.fence, record: .untouched)
        }
        switch phase {
        case .arriving(let connect):
            return arrived(connect, result, now: now)
        case .keeping(let connect, let session, let terms, let tokens):
            guard case .done = result else { return refuse(connect.version, .serverUnavailable, note: .unavailable) }
            return open(connect, session, terms, tokens)
        case .open(var session):
            phase = .closed
            let reaction = session.completed(result, limits.configuration)
            phase = .open(session)
            return perform(reaction)
        case .closed where isGone:
            // Let in when nobody was waiting any more.
            return disconnected(now: now)
        case .connecting, .closed:
            return []
        }
    }

    /// The post office, or the operator, ends the connection.
    mutating func dismissed(_ reason: DismissalReason) -> [SessionAction] {
        if reason == .takenOver { claim?.record = .untouched }
        switch reason {
        case .takenOver: return close(.sessionTakenOver, isTakenOver: true)
        case .revoked: return close(.administrativeAction, "the certificate is not accepted any more")
        case .shuttingDown: return close(.serverShuttingDown)
        }
    }

    /// The newest token key is this.
    /// - Returns: The apps whose tokens the device is to be sent, with the granted QoS; none if it was sent those of the key.
    mutating func renewTokens(_ key: UInt32) -> [WantedApp] {
        guard case .open(var session) = phase, session.newTokenKey != key else { return [] }
        session.newTokenKey = key
        phase = .open(session)
        return session.subscriptions.entries.compactMap { entry in
            entry.tokenQoS.map { WantedApp(entry.number, qualityOfService: $0) }
        }
    }

    /// Nothing came for one and a half keep alives ([MQTT-3.1.2-22]), or no CONNECT in its time.
    mutating func fellSilent() -> [SessionAction] {
        if case .connecting = phase {
            phase = .closed
            return [.end]
        }
        return close(.keepAliveTimeout, note: .silent)
    }

    /// The device takes nothing of what is written to it: nothing more can be said.
    mutating func stalled() -> [SessionAction] {
        leaveOpen()
        phase = .closed
        return [.end]
    }

    /// The connection is gone.
    mutating func disconnected(now: WallTime) -> [SessionAction] {
        isGone = true
        leaveOpen()
        phase = .closed
        guard var departure = claim else { return [] }
        claim = nil
        if case .keep(var record) = departure.record {
            record.disconnected = now.milliseconds
            departure.record = .keep(record)
        }
        return [.depart(departure)]
    }

    /// Ends the connection from this side; says why where the version can.
    mutating func close(
        _ code: MQTTReasonCode,
        _ reason: String? = nil,
        note: SessionNote? = nil,
        isTakenOver: Bool = false
    ) -> [SessionAction] {
        let notes = note.map { [SessionAction.log($0)] } ?? []
        switch phase {
        case .connecting:
            phase = .closed
            return notes + [.end]
        case .arriving(let connect), .keeping(let connect, _, _, _):
            // Before CONNACK there is no DISCONNECT ([MQTT-3.14.0-1]).
            leaveOpen()
            return notes + refuse(connect.version, code.isAllowed(in: .connack) ? code : .serverUnavailable)
        case .open(let session):
            if !isTakenOver { leaveOpen() }
            phase = .closed
            guard session.version == .v5 else { return notes + [.end] }
            let disconnect = MQTTDisconnect(
                reasonCode: code.isAllowed(in: .disconnect) ? code : .protocolError,
                properties: reason.map { [.reasonString($0)] } ?? []
            )
            return notes + [.send(.disconnect(disconnect)), .end]
        case .closed:
            return []
        }
    }

    /// Refuses a CONNECT ([MQTT-3.2.2-7]).
    mutating func refuse(
        _ version: MQTTVersion,
        _ code: MQTTReasonCode,
        _ reason: String? = nil,
        note: SessionNote? = nil
    ) -> [SessionAction] {
        phase = .closed
        let properties: MQTTProperties = version == .v5 ? reason.map { [.reasonString($0)] } ?? [] : []
        let connack = MQTTConnack(reasonCode: code, properties: properties)
        return (note.map { [.log($0)] } ?? []) + [.send(.connack(connack)), .end]
    }

    /// Notes what of an open session is to be kept.
    private mutating func leaveOpen() {
        switch phase {
        case .open(let session): claim?.record = session.departingRecord
        case .keeping(_, let session, _, _): claim?.record = session.record.map { .keep($0) } ?? .untouched
        case .connecting, .arriving, .closed: break
        }
    }

    /// Turns what a session wants into actions of the connection.
    private mutating func perform(_ reaction: OpenSession.Reaction) -> [SessionAction] {
        switch reaction.end {
        case nil: return reaction.actions
        case .silently:
            leaveOpen()
            phase = .closed
            return reaction.actions + [.end]
        case .because(let code, let reason, let note):
            return reaction.actions + close(code, reason, note: note)
        }
    }
}

/// The configuration, shared by all sessions instead of copied into each.
final class SessionLimits: Sendable {
    let configuration: CourierConfiguration
    /// In seconds; may change while the service runs, and holds for the connections that come after.
    let longestKeepAlive: Atomic<Int64>
    /// In seconds; as ``longestKeepAlive``.
    let longestSession: Atomic<Int64>

    init(_ configuration: CourierConfiguration) {
        self.configuration = configuration
        longestKeepAlive = Atomic(configuration.longestKeepAlive.components.seconds)
        longestSession = Atomic(configuration.longestSession.components.seconds)
    }
}
