import HeraldMailbox
import HeraldModel

/// The messages on their way to a device: in flight under their packet identifiers, and waiting behind them.
///
/// 1. Never has more messages in flight than the device's receive maximum ([MQTT-3.3.4-9], [MQTT-4.9.0-2]). Messages past
///    it wait in order ([MQTT-4.6.0-5]): one token for each app, one broadcast for each channel, and as many notifications
///    as the post office hands over. A device with more than ``CourierConfiguration/queuedMessages`` is disconnected.
/// 2. A packet identifier is an index into an array that is as long as the most that ever was in flight: an idle device
///    costs next to nothing.
/// 3. Notifications that an earlier connection of the session left unacknowledged are sent again under their identifier,
///    marked as duplicates ([MQTT-4.4.0-1], [MQTT-3.3.1-1]).
struct DeliveryWindow {
    enum Message {
        case delivery(Delivery)
        /// A device token for the app; out of line, since it is rare and larger.
        indirect case token(AppNumber, DeviceToken, qualityOfService: UInt8)
        /// The newest of a channel, as it is when its turn comes.
        case broadcast(ChannelSubscription)
        /// The newest announcement of the service, as it is when its turn comes.
        case announcement(qualityOfService: UInt8)

        var qualityOfService: UInt8 {
            switch self {
            case .delivery(let delivery): delivery.qualityOfService
            case .token(_, _, let qualityOfService): qualityOfService
            case .broadcast(let subscription): subscription.qualityOfService
            case .announcement(let qualityOfService): qualityOfService
            }
        }
    }

    /// A message that is sent now.
    struct OutgoingMessage {
        let message: Message
        /// nil at QoS 0.
        let packetIdentifier: UInt16?
        let isDuplicate: Bool
    }

    /// The state of one packet identifier.
    private enum Identifier {
        case free
        case inFlight(Message)
        /// Kept for a notification of an earlier connection.
        case reserved(NotificationID)
    }

    /// The most messages in flight; 1 to 32,767.
    var limit: Int {
        // Half of all identifiers; reserved ones have the other half.
        didSet { limit = min(max(1, limit), Int(Int16.max)) }
    }
    private var identifiers: [Identifier] = []
    private var freeIdentifiers: [UInt16] = []
    private var reservedCount = 0
    private(set) var inFlightCount = 0
    private var queue = MessageQueue()
    /// The packet identifier of each app's newest token in flight.
    private var tokensInFlight: [AppNumber: UInt16] = [:]

    /// - Parameter limit: The most messages in flight; 1 to 32,767.
    init(limit: Int) {
        // Half of all identifiers; reserved ones have the other half.
        self.limit = min(max(1, limit), Int(Int16.max))
    }

    /// Keeps their packet identifiers for what an earlier connection of the session left; before anything is in flight.
    mutating func reserve(_ notifications: [UnacknowledgedNotification]) {
        guard inFlightCount == 0, reservedCount == 0 else { return }
        identifiers = []
        freeIdentifiers = []
        for notification in notifications.sorted(by: { $0.packetIdentifier < $1.packetIdentifier }) {
            let index = Int(notification.packetIdentifier) - 1
            // The upper half stays for new messages: reservations may pile up over many connections.
            guard index >= identifiers.count, index < Int(Int16.max) else { continue }
            while identifiers.count < index { addFreeIdentifier() }
            identifiers.append(.reserved(notification.notification))
            reservedCount += 1
        }
    }

    var queuedCount: Int { queue.count }

    /// Puts a message behind those that wait.
    ///
    /// A token replaces the app's waiting one, and is dropped if the same one is in flight.
    mutating func enqueue(_ message: Message) {
        if case .token(let app, let token, _) = message, isInFlight(token, of: app) { return }
        queue.add(message)
    }

    private func isInFlight(_ token: DeviceToken, of app: AppNumber) -> Bool {
        guard let identifier = tokensInFlight[app], case .inFlight(let message) = identifiers[Int(identifier) - 1],
            case .token(_, token, _) = message
        else { return false }
        return true
    }

    /// The message whose turn it is, if the window lets it go; nil else.
    var next: Message? {
        guard let message = queue.first else { return nil }
        return message.qualityOfService == 0 || inFlightCount < limit ? message : nil
    }

    /// Drops the message whose turn it is.
    mutating func dropNext() {
        _ = queue.takeFirst()
    }

    /// Takes the message whose turn it is, which goes out now.
    mutating func takeNext() -> OutgoingMessage? {
        guard next != nil, let message = queue.takeFirst() else { return nil }
        guard message.qualityOfService > 0 else {
            return OutgoingMessage(message: message, packetIdentifier: nil, isDuplicate: false)
        }
        inFlightCount += 1
        if reservedCount > 0, let index = reservation(for: message) {
            reservedCount -= 1
            identifiers[index] = .inFlight(message)
            return OutgoingMessage(message: message, packetIdentifier: UInt16(index + 1), isDuplicate: true)
        }
        if freeIdentifiers.isEmpty { addFreeIdentifier() }
        let identifier = freeIdentifiers.removeLast()
        identifiers[Int(identifier) - 1] = .inFlight(message)
        if case .token(let app, _, _) = message { tokensInFlight[app] = identifier }
        return OutgoingMessage(message: message, packetIdentifier: identifier, isDuplicate: false)
    }

    /// The device has answered for a message in flight; nil if none has that identifier.
    mutating func acknowledge(_ packetIdentifier: UInt16) -> Message? {
        let index = Int(packetIdentifier) - 1
        guard identifiers.indices.contains(index), case .inFlight(let message) = identifiers[index] else { return nil }
        identifiers[index] = .free
        freeIdentifiers.append(packetIdentifier)
        inFlightCount -= 1
        if case .token(let app, _, _) = message, tokensInFlight[app] == packetIdentifier { tokensInFlight[app] = nil }
        return message
    }

    /// Drops what waits for these apps and has not been sent.
    mutating func drop(_ apps: Set<AppNumber>) {
        queue.remove { message in
            switch message {
            case .delivery(let delivery): apps.contains(delivery.app)
            case .token(let app, _, _): apps.contains(app)
            case .broadcast, .announcement: false
            }
        }
    }

    /// Drops what waits for channels whose subscription is closed.
    mutating func dropClosedChannels() {
        queue.remove { if case .broadcast(let subscription) = $0 { subscription.isClosed } else { false } }
    }

    /// The notifications that were sent and not acknowledged.
    var unacknowledged: [UnacknowledgedNotification] {
        var unacknowledged: [UnacknowledgedNotification] = []
        for (index, state) in identifiers.enumerated() {
            switch state {
            case .inFlight(.delivery(let delivery)):
                let notification = delivery.envelope.notification.uniqueID
                unacknowledged.append(
                    UnacknowledgedNotification(notification: notification, packetIdentifier: UInt16(index + 1))
                )
            case .reserved(let notification):
                unacknowledged.append(
                    UnacknowledgedNotification(notification: notification, packetIdentifier: UInt16(index + 1))
                )
            case .free, .inFlight(.token), .inFlight(.broadcast), .inFlight(.announcement):
                break
            }
        }
        return unacknowledged
    }

    /// The messages that were sent and not acknowledged, with their packet identifiers.
    var inFlight: [(packetIdentifier: UInt16, message: Message)] {
        identifiers.enumerated().compactMap { index, state in
            if case .inFlight(let message) = state { (UInt16(index + 1), message) } else { nil }
        }
    }

    /// Whether a device token is in flight or waits.
    var holdsToken: Bool { queue.holdsToken || !tokensInFlight.isEmpty }

    private mutating func addFreeIdentifier() {
        identifiers.append(.free)
        freeIdentifiers.append(UInt16(truncatingIfNeeded: identifiers.count))
    }

    private func reservation(for message: Message) -> Int? {
        guard case .delivery(let delivery) = message else { return nil }
        let wanted = delivery.envelope.notification.uniqueID
        return identifiers.firstIndex {
            if case .reserved(let notification) = $0 { notification == wanted } else { false }
        }
    }
}

/// A notification that was not acknowledged, and the packet identifier under which it was sent.
struct UnacknowledgedNotification: Hashable, Sendable {
    let notification: NotificationID
    let packetIdentifier: UInt16
}
