import HeraldModel

/// The messages that wait for a device, in order; at most one device token for each app.
struct MessageQueue {
    private var messages: [DeliveryWindow.Message] = []
    private var head = 0
    /// Messages that have left the front of `messages`.
    private var removedCount = 0
    /// The place of each waiting token, counted from the first message that ever waited.
    private var tokens: [AppNumber: Int] = [:]

    var count: Int { messages.count - head }

    var first: DeliveryWindow.Message? { head < messages.count ? messages[head] : nil }

    var holdsToken: Bool { !tokens.isEmpty }

    /// Adds a message at the end; a token takes the place of one of the same app.
    mutating func add(_ message: DeliveryWindow.Message) {
        if case .token(let app, _, _) = message {
            if let place = tokens[app] {
                messages[place - removedCount] = message
                return
            }
            tokens[app] = removedCount + messages.count
        }
        messages.append(message)
    }

    mutating func takeFirst() -> DeliveryWindow.Message? {
        guard head < messages.count else { return nil }
        let message = messages[head]
        head += 1
        if case .token(let app, _, _) = message { tokens[app] = nil }
        if head == messages.count {
            // Keeps its room while small; a burst's room goes back.
            messages.removeAll(keepingCapacity: messages.count <= 8)
            if tokens.capacity > 0 { tokens = [:] }
            (head, removedCount) = (0, 0)
        } else if head >= 64 {
            messages.removeFirst(head)
            removedCount += head
            head = 0
        }
        return message
    }

    /// Removes messages that wait, in one pass.
    mutating func remove(where isRemoved: (DeliveryWindow.Message) -> Bool) {
        let kept = messages[head...].filter { !isRemoved($0) }
        self = MessageQueue()
        for message in kept { add(message) }
    }
}
