import HeraldModel
import HeraldWire

/// Decides when a message is withheld from a device: its client ends the connection each time the message comes.
///
/// A strict client closes the connection at a packet that it cannot read (MQTT 5 §4.13). The message is not acknowledged, so
/// it comes first on the next connection, which ends in the same way, without end. A device on a bad network also goes away
/// with a message unacknowledged. An end therefore counts only under all of these conditions:
///
/// - The peer ended the connection: no keep-alive ran out, no newer connection took over, and the service did not close it.
/// - It did so within ``longestReaction`` after the last message, or its DISCONNECT says that a packet was wrong. A network
///   that fails ends nothing, or ends it later.
/// - One message was unacknowledged, and no other. After an end with several, the device is suspected, and gets one at a time.
///
/// A connection that outlives the message clears it. Counts are in memory, of one node: a restart begins again.
struct RepeatedEnds {
    /// A message that a connection left unacknowledged.
    enum Message: Hashable, Sendable {
        case notification(NotificationID)
        case broadcast(ChannelID, number: UInt64)
        /// A device token: never withheld.
        case token
    }

    /// The way in which a connection ended.
    enum Cause: Hashable, Sendable {
        /// The peer closed it, this long after the last message was written.
        case closed(after: Duration)
        /// The peer's DISCONNECT has a reason code that says that a packet was wrong.
        case named
        /// The end was not a reaction: a timeout, or a DISCONNECT with another reason.
        case other
    }

    /// The knowledge of one device.
    private struct Entry {
        /// The message that is suspected; nil if there were several.
        var message: Message?
        /// The weight of the ends at this message.
        var weight = 0
        /// The newest withheld broadcast of each channel: a clean session would be sent it again.
        var withheld: [ChannelID: UInt64] = [:]
        var isSuspected = false

        mutating func suspect(_ message: Message?) {
            isSuspected = true
            self.message = message
            weight = 0
        }

        mutating func clear() {
            isSuspected = false
            message = nil
            weight = 0
        }
    }

    /// The longest time from a message to the end of the connection that counts.
    static let longestReaction = Duration.seconds(2)
    /// The weight at which a message is withheld: five ends, or two whose reason code names a packet.
    private static let limit = 5
    private static let namedWeight = 3
    /// Channels of one device whose withheld broadcast is remembered.
    private static let channelLimit = 100

    /// The devices that were noted lately, and those before them: the older half goes when the newer one is full.
    private var recent: [DeviceNumber: Entry] = [:]
    private var older: [DeviceNumber: Entry] = [:]
    private let capacity: Int

    /// - Parameter capacity: Devices in each half.
    init(capacity: Int = 10_000) {
        self.capacity = capacity
    }

    /// Whether a device gets one message at a time until it has acknowledged what waits.
    func isSuspected(_ device: DeviceNumber) -> Bool {
        entry(device)?.isSuspected ?? false
    }

    /// The newest withheld broadcast of each channel.
    func withheldBroadcasts(of device: DeviceNumber) -> [ChannelID: UInt64] {
        entry(device)?.withheld ?? [:]
    }

    /// Notes the end of a connection, with all that it left unacknowledged.
    ///
    /// `wasCleared` says whether the device, suspected before, had acknowledged all that waited.
    /// - Returns: Whether the unacknowledged message, the only one, is withheld from now on.
    mutating func ended(
        _ device: DeviceNumber,
        _ cause: Cause,
        unacknowledged: [Message],
        wasCleared: Bool = false
    ) -> Bool {
        var entry = entry(device) ?? Entry()
        if wasCleared { entry.clear() }
        defer { set(entry, device) }
        let isKnown = entry.message.map { unacknowledged.contains($0) } ?? false
        guard let weight = Self.weight(of: cause) else {
            // It outlived the message.
            if isKnown { entry.clear() }
            return false
        }
        guard let message = unacknowledged.first else { return false }
        guard unacknowledged.count == 1, message != .token else {
            if !isKnown { entry.suspect(nil) }
            return false
        }
        if !isKnown { entry.suspect(message) }
        entry.weight += weight
        guard entry.weight >= Self.limit else { return false }
        entry.clear()
        if case .broadcast(let channel, let number) = message {
            if entry.withheld.count >= Self.channelLimit { entry.withheld = [:] }
            entry.withheld[channel] = number
        }
        return true
    }

    /// The weight of an end; nil if it says nothing against a message.
    private static func weight(of cause: Cause) -> Int? {
        switch cause {
        case .named: namedWeight
        case .closed(let time): (.zero...longestReaction).contains(time) ? 1 : nil
        case .other: nil
        }
    }

    private func entry(_ device: DeviceNumber) -> Entry? { recent[device] ?? older[device] }

    private mutating func set(_ entry: Entry, _ device: DeviceNumber) {
        guard entry.isSuspected || !entry.withheld.isEmpty else {
            recent[device] = nil
            older[device] = nil
            return
        }
        if recent[device] == nil, recent.count >= capacity {
            older = recent
            recent = [:]
        }
        recent[device] = entry
    }
}

/// The end of a connection that the service did not decide on.
enum PeerEnd: Hashable, Sendable {
    /// The peer, or its network, closed it.
    case closed
    /// The peer sent DISCONNECT.
    case disconnect(MQTTReasonCode)
    /// The peer was silent, or took nothing, for too long.
    case timeout
}

extension RepeatedEnds.Cause {
    /// The cause of an end, so long after the last message was written.
    ///
    /// A DISCONNECT without a failure, or for the sake of load or of an operator, is not a reaction to a packet.
    init(_ end: PeerEnd, after time: Duration) {
        switch end {
        case .closed: self = .closed(after: time)
        case .disconnect(let code):
            switch code {
            case .malformedPacket, .protocolError, .topicNameInvalid, .topicAliasInvalid, .packetTooLarge,
                .payloadFormatInvalid, .retainNotSupported, .qosNotSupported:
                self = .named
            case .unspecifiedError, .implementationSpecificError: self = .closed(after: time)
            default: self = .other
            }
        case .timeout: self = .other
        }
    }
}
