import HeraldMailbox
import HeraldModel

/// What is on its way to a device: messages in flight under their packet identifiers, and those that wait behind them.
///
/// 1. Never more unacknowledged messages than the device's receive maximum ([MQTT-3.3.4-9], [MQTT-4.9.0-2]); what is past
///    it waits in order ([MQTT-4.6.0-5]). How many may wait is bounded by who hands them over.
/// 2. Packet identifiers are places in an array that is as long as the most that ever was in flight: an idle device
///    costs next to nothing.
/// 3. What an earlier connection of the same session left unacknowledged goes out again under its identifier, marked as
///    a duplicate ([MQTT-4.4.0-1], [MQTT-3.3.1-1]).
struct DeliveryWindow {
    enum Message {
        case delivery(Delivery)
        /// A device token for the app; out of line, since it is rare and larger.
        indirect case token(AppNumber, DeviceToken, qualityOfService: UInt8)
        /// The newest of a channel, as it is when its turn comes.
        case broadcast(ChannelSubscription)

        var qualityOfService: UInt8 {
            switch self {
            case .delivery(let delivery): delivery.qualityOfService
            case .token(_, _, let qualityOfService): qualityOfService
            case .broadcast(let subscription): subscription.qualityOfService
            }
        }
    }

    /// A message that goes out now.
    struct Departure {
        let message: Message
        /// nil at QoS 0.
        let packetIdentifier: UInt16?
        let isDuplicate: Bool
    }

    /// A notification that was not acknowledged, and the packet identifier under which it was sent.
    struct Remnant: Hashable, Sendable {
        let notification: NotificationID
        let packetIdentifier: UInt16
    }

    private enum Place {
        case free
        case inFlight(Message)
        /// Kept for a notification of an earlier connection.
        case reserved(NotificationID)
    }

    private let limit: Int
    private var places: [Place] = []
    private var freePlaces: [UInt16] = []
    private var reservedCount = 0
    private(set) var inFlightCount = 0
    private var queue: [Message] = []
    private var queueHead = 0

    /// - Parameter limit: The most messages in flight; 1 to 32,767.
    init(limit: Int) {
        // Half of all identifiers, so that places kept for remnants never push a new one past the last.
        self.limit = min(max(1, limit), Int(Int16.max))
    }

    /// Keeps their packet identifiers for what an earlier connection of the session left; before anything is in flight.
    mutating func reserve(_ remnants: [Remnant]) {
        guard inFlightCount == 0, reservedCount == 0 else { return }
        places = []
        freePlaces = []
        for remnant in remnants.sorted(by: { $0.packetIdentifier < $1.packetIdentifier }) {
            let index = Int(remnant.packetIdentifier) - 1
            guard index >= places.count else { continue }
            while places.count < index { freeNewPlace() }
            places.append(.reserved(remnant.notification))
            reservedCount += 1
        }
    }

    var queuedCount: Int { queue.count - queueHead }

    /// Puts a message behind those that wait.
    mutating func enqueue(_ message: Message) {
        queue.append(message)
    }

    /// The message whose turn it is, if the window lets it go; nil else.
    var next: Message? {
        guard queueHead < queue.count else { return nil }
        let message = queue[queueHead]
        return message.qualityOfService == 0 || inFlightCount < limit ? message : nil
    }

    /// Drops the message whose turn it is.
    mutating func dropNext() {
        _ = takeFromQueue()
    }

    /// Takes the message whose turn it is, which goes out now.
    mutating func takeNext() -> Departure? {
        guard next != nil, let message = takeFromQueue() else { return nil }
        guard message.qualityOfService > 0 else {
            return Departure(message: message, packetIdentifier: nil, isDuplicate: false)
        }
        inFlightCount += 1
        if reservedCount > 0, let index = reservation(for: message) {
            reservedCount -= 1
            places[index] = .inFlight(message)
            return Departure(message: message, packetIdentifier: UInt16(index + 1), isDuplicate: true)
        }
        if freePlaces.isEmpty { freeNewPlace() }
        let identifier = freePlaces.removeLast()
        places[Int(identifier) - 1] = .inFlight(message)
        return Departure(message: message, packetIdentifier: identifier, isDuplicate: false)
    }

    /// The device has answered for a message in flight; nil if none has that identifier.
    mutating func acknowledge(_ packetIdentifier: UInt16) -> Message? {
        let index = Int(packetIdentifier) - 1
        guard places.indices.contains(index), case .inFlight(let message) = places[index] else { return nil }
        places[index] = .free
        freePlaces.append(packetIdentifier)
        inFlightCount -= 1
        return message
    }

    /// Drops what waits for an app and has not been sent.
    mutating func drop(_ app: AppNumber) {
        queue = queue[queueHead...].filter { message in
            switch message {
            case .delivery(let delivery): delivery.app != app
            case .token(let other, _, _): other != app
            case .broadcast: true
            }
        }
        queueHead = 0
    }

    /// Drops device tokens that wait and have not been sent.
    mutating func dropTokens() {
        queue = queue[queueHead...].filter { if case .token = $0 { false } else { true } }
        queueHead = 0
    }

    /// The notifications that were sent and not acknowledged.
    var remnants: [Remnant] {
        var remnants: [Remnant] = []
        for (index, place) in places.enumerated() {
            switch place {
            case .inFlight(.delivery(let delivery)):
                let notification = delivery.letter.notification.uniqueID
                remnants.append(Remnant(notification: notification, packetIdentifier: UInt16(index + 1)))
            case .reserved(let notification):
                remnants.append(Remnant(notification: notification, packetIdentifier: UInt16(index + 1)))
            case .free, .inFlight(.token), .inFlight(.broadcast):
                break
            }
        }
        return remnants
    }

    /// Whether a device token is in flight or waits.
    var holdsToken: Bool {
        queue[queueHead...].contains { if case .token = $0 { true } else { false } }
            || places.contains { if case .inFlight(.token) = $0 { true } else { false } }
    }

    private mutating func freeNewPlace() {
        places.append(.free)
        freePlaces.append(UInt16(truncatingIfNeeded: places.count))
    }

    private mutating func takeFromQueue() -> Message? {
        guard queueHead < queue.count else { return nil }
        let message = queue[queueHead]
        queueHead += 1
        if queueHead == queue.count {
            // Keeps its room while small; a burst's room goes back.
            queue.removeAll(keepingCapacity: queue.count <= 8)
            queueHead = 0
        } else if queueHead >= 64 {
            queue.removeFirst(queueHead)
            queueHead = 0
        }
        return message
    }

    private func reservation(for message: Message) -> Int? {
        guard case .delivery(let delivery) = message else { return nil }
        let wanted = delivery.letter.notification.uniqueID
        return places.firstIndex { if case .reserved(let notification) = $0 { notification == wanted } else { false } }
    }
}
