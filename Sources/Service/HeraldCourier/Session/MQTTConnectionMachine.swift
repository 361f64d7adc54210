import HeraldMailbox
import HeraldModel
import HeraldWire

/// Decides about one connection of a device: packets and events go in, actions come out.
///
/// It goes from `connecting` (no CONNECT yet) over `admitting` (the registry decides) and `storing` to `open`, and from
/// each of them to `closed`. It knows no socket, clock, database or lock, and limits what the peer makes it hold.
///
/// 1. Refuses in CONNACK or DISCONNECT, with the reason code of the standard (3.1.1: by closing).
/// 2. Opens a new session, or resumes the stored one: ``ConnectHandshake``.
/// 3. Gives packets and answers of the registry to the open ``MQTTSession``.
/// 4. Releases the device, with what becomes of the stored session.
///
/// Messages in flight to the device are in a ``DeliveryWindow``, beside it.
struct MQTTConnectionMachine {
    /// Short phases are out of line, so that a connection pays for its open session only.
    private enum Phase {
        case connecting
        indirect case admitting(ConnectHandshake)
        /// The session's record is being stored before CONNACK says what it holds.
        indirect case storing(ConnectHandshake, NegotiatedSession)
        case open(MQTTSession)
        /// The session is taken out of the phase, so that it is changed in place: nothing may ask for the phase meanwhile.
        case modifying
        case closed
    }

    let device: DeviceID
    let environment: PushEnvironment
    private let limits: CourierLimits
    private var phase = Phase.connecting
    /// The device and fence that the registry gave, until they are released.
    private(set) var claim: DeviceClaim?
    private var isGone = false

    init(device: DeviceID, environment: PushEnvironment, limits: CourierLimits) {
        self.device = device
        self.environment = environment
        self.limits = limits
    }

    /// Whether ``received(_:)`` takes another packet.
    var canReceive: Bool {
        switch phase {
        case .connecting: true
        case .open(let session): session.waitingCount < limits.configuration.waitingOperations
        case .admitting, .storing, .closed, .modifying: false
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

    // MARK: - Packets and answers

    /// Takes a packet, while ``canReceive`` allows it; ignores it otherwise.
    mutating func received(_ packet: MQTTPacket) -> [ConnectionAction] {
        switch phase {
        case .connecting:
            guard case .connect(let connect) = packet else {
                return close(.protocolError, "the first packet is not CONNECT", fault: .protocolError)
            }
            let handshake = ConnectHandshake(
                connect: connect,
                device: device,
                environment: environment,
                limits: limits
            )
            if let refusal = handshake.refusal { return refuse(connect.version, refusal) }
            phase = .admitting(handshake)
            return [.request(.admit)]
        case .open: return perform(modify { [limits] in $0.received(packet, limits.configuration) })
        case .admitting, .storing, .closed, .modifying: return []
        }
    }

    /// The bytes that came are not a packet ([MQTT-4.13.1-1]).
    ///
    /// `version` is the one in which a CONNECT can be refused, nil if the peer has shown none.
    mutating func failed(_ error: MQTTError, refusalVersion version: MQTTVersion?) -> [ConnectionAction] {
        let fault: ConnectionFault = error.code == .malformedPacket ? .malformed : .protocolError
        guard case .connecting = phase else { return close(error.code, error.message, fault: fault) }
        // 3.1.1 has a return code for a wrong version only; all else ends without CONNACK (its [MQTT-3.1.4-1]).
        guard let version, version == .v5 || error.code == .unsupportedProtocolVersion else {
            phase = .closed
            return [.log(fault), .end]
        }
        let code = error.code.isAllowed(in: .connack) ? error.code : .protocolError
        return refuse(version, ConnectRefusal(code: code, reason: error.message, fault: fault))
    }

    /// Takes the registry's answer to a request.
    mutating func completed(_ answer: RegistryAnswer, now: WallTime) -> [ConnectionAction] {
        if case .admitted(let admitted) = answer {
            claim = DeviceClaim(device: admitted.device, fence: admitted.fence, session: .unchanged)
        }
        switch phase {
        case .admitting(let handshake):
            guard case .admitted(let admitted) = answer else {
                return refuse(handshake.version, ConnectRefusal(answer))
            }
            return begin(handshake, admitted, now: now)
        case .storing(let handshake, let negotiated):
            switch answer {
            case .done: return open(handshake, negotiated)
            // Another node stored a session meanwhile.
            case .admitted(let admitted): return begin(handshake, admitted, now: now)
            default: return refuse(handshake.version, .unavailable)
            }
        case .open: return perform(modify { $0.completed(answer) })
        case .closed where isGone:
            // Admitted after the connection was gone.
            return disconnected(now: now)
        case .connecting, .closed, .modifying: return []
        }
    }

    /// Changes the open session.
    private mutating func modify<Value>(_ change: (inout MQTTSession) -> Value) -> Value? {
        guard case .open(var session) = phase else { return nil }
        phase = .modifying
        defer { phase = .open(session) }
        return change(&session)
    }

    /// Negotiates the session, and stores it unless the store has it as it is.
    private mutating func begin(
        _ handshake: ConnectHandshake,
        _ admitted: AdmittedDevice,
        now: WallTime
    ) -> [ConnectionAction] {
        let negotiated = handshake.negotiate(admitted, now: now)
        let record = negotiated.session.record
        guard record == admitted.record.session, admitted.record.sequence == nil else {
            // Stored first: CONNACK says what the service will still know after a crash.
            phase = .storing(handshake, negotiated)
            return [.request(.begin(record, replacing: admitted.record))]
        }
        return open(handshake, negotiated)
    }

    private mutating func open(_ handshake: ConnectHandshake, _ negotiated: NegotiatedSession) -> [ConnectionAction] {
        var session = negotiated.session
        session.isStored = session.expiryInterval > 0
        phase = .open(session)
        return handshake.accept(negotiated)
    }

    /// Notes the newest token key.
    /// - Returns: The apps whose tokens the device needs, with the granted QoS; none if it has those of the key.
    mutating func renewTokens(_ key: UInt32) -> [AppSubscription] {
        modify { session -> [AppSubscription] in
            guard session.newTokenKey != key else { return [] }
            session.newTokenKey = key
            return session.subscriptions.entries.compactMap { entry in
                entry.tokenQoS.map { AppSubscription(entry.number, qualityOfService: $0) }
            }
        } ?? []
    }

    /// A new announcement is to be sent, if the device is subscribed to it.
    mutating func announcement() -> [ConnectionAction] {
        guard case .open(let session) = phase, let qualityOfService = session.subscriptions.serviceQoS else {
            return []
        }
        return [.announce(qualityOfService: qualityOfService, after: 0)]
    }

    /// Ends the time in which the device has to present its tokens.
    mutating func tokenGraceEnded() -> [ConnectionAction] { modify { $0.endTokenGrace() } ?? [] }

    // MARK: - Ends

    /// The post office or the operator ends the connection.
    mutating func dismissed(_ reason: DismissalReason) -> [ConnectionAction] {
        switch reason {
        case .takenOver:
            // The stored session is the newer connection's.
            claim?.session = .unchanged
            return close(.sessionTakenOver, "a newer connection with this certificate", keepsClaim: true)
        case .revoked: return close(.notAuthorized, "the certificate is not accepted any more")
        case .disconnected: return close(.administrativeAction, "connect again at once")
        case .sentAway: return close(.serverBusy, "an operator sends the device away: connect again later")
        case .shuttingDown: return close(.serverShuttingDown, "the service ends all connections: connect again")
        }
    }

    /// No packet came for one and a half keep-alives ([MQTT-3.1.2-22]), or no CONNECT in its time.
    mutating func keepAliveTimedOut() -> [ConnectionAction] {
        if case .connecting = phase {
            phase = .closed
            return [.end]
        }
        return close(.keepAliveTimeout, "nothing came for one and a half keep-alives", fault: .keepAliveTimeout)
    }

    /// More messages wait for the device than one may have waiting.
    mutating func queueFilled() -> [ConnectionAction] {
        close(.quotaExceeded, "too many messages wait for a PUBACK", fault: .queueFull)
    }

    /// The device takes nothing of what is written to it: nothing more can be sent.
    mutating func writeTimedOut() -> [ConnectionAction] {
        noteSession()
        phase = .closed
        return [.end]
    }

    /// The connection is gone.
    mutating func disconnected(now: WallTime) -> [ConnectionAction] {
        isGone = true
        noteSession()
        phase = .closed
        guard var claim = claim.take() else { return [] }
        if case .keep(var record) = claim.session {
            record.disconnected = now.milliseconds
            claim.session = .keep(record)
        }
        return [.release(claim)]
    }

    /// Closes the connection, with a reason where the version has one.
    private mutating func close(
        _ code: MQTTReasonCode,
        _ reason: String,
        fault: ConnectionFault? = nil,
        keepsClaim: Bool = false
    ) -> [ConnectionAction] {
        let log = fault.map { [ConnectionAction.log($0)] } ?? []
        switch phase {
        case .connecting:
            phase = .closed
            return log + [.end]
        case .admitting(let handshake), .storing(let handshake, _):
            // Before CONNACK there is no DISCONNECT ([MQTT-3.14.0-1]).
            if !keepsClaim { noteSession() }
            let code = code.isAllowed(in: .connack) ? code : .serverUnavailable
            return log + refuse(handshake.version, ConnectRefusal(code: code, reason: reason))
        case .open(let session):
            if !keepsClaim { noteSession() }
            phase = .closed
            guard session.version == .v5 else { return log + [.end] }
            let disconnect = MQTTDisconnect(
                reasonCode: code.isAllowed(in: .disconnect) ? code : .protocolError,
                properties: [.reasonString(reason)]
            )
            return log + [.send(.disconnect(disconnect)), .end]
        case .closed, .modifying: return []
        }
    }

    /// Refuses a CONNECT ([MQTT-3.2.2-7]).
    private mutating func refuse(_ version: MQTTVersion, _ refusal: ConnectRefusal) -> [ConnectionAction] {
        phase = .closed
        var properties: MQTTProperties = []
        if version == .v5 {
            properties.append(.reasonString(refusal.reason))
            if let reference = refusal.serverReference { properties.append(.serverReference(reference)) }
        }
        let connack = MQTTConnack(reasonCode: refusal.code, properties: properties)
        return (refusal.fault.map { [.log($0)] } ?? []) + [.send(.connack(connack)), .end]
    }

    /// Notes in the claim what becomes of the stored session.
    private mutating func noteSession() {
        switch phase {
        case .open(let session): claim?.session = session.claimedSession
        case .storing(_, let negotiated): claim?.session = negotiated.session.record.map { .keep($0) } ?? .unchanged
        case .connecting, .admitting, .closed, .modifying: break
        }
    }

    private mutating func perform(_ output: SessionOutput?) -> [ConnectionAction] {
        guard let output else { return [] }
        switch output.end {
        case nil: return output.actions
        case .silently:
            noteSession()
            phase = .closed
            return output.actions + [.end]
        case .because(let code, let reason, let fault):
            return output.actions + close(code, reason, fault: fault)
        }
    }
}
