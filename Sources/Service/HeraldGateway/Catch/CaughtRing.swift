import HeraldModel

/// Limits of what is caught.
package struct CatchLimits: Sendable {
    /// Messages that are kept; the newest win.
    ///
    /// 1,000: more than a test run looks at, and one answer of the console.
    package var messages = 1000
    /// Memory of the kept messages, in bytes.
    ///
    /// 64 MiB: room for 1,000 of the longest payloads and headers.
    package var bytes = 64 << 20
    /// The longest time that a message is kept, and that catching lasts when an operator switches it on.
    package var age = Duration.seconds(24 * 3600)
    /// Requests of the console that may wait for a message at once.
    ///
    /// 64: half of the console's connections.
    package var waiting = 64
}

/// The newest messages, bounded in number, bytes and age.
struct CaughtRing {
    private let limits: CatchLimits
    private var messages: [UInt64: CaughtMessage] = [:]
    /// No message has a lower number.
    private var first: UInt64 = 1
    /// The number of the newest message; 0 for none yet.
    private(set) var last: UInt64 = 0
    private(set) var bytes = 0

    init(_ limits: CatchLimits) {
        self.limits = limits
    }

    var count: Int { messages.count }

    /// Adds a message, and removes the oldest beyond the limits.
    mutating func add(_ message: CaughtMessage) {
        last += 1
        messages[last] = message
        bytes += message.size
        while messages.count > limits.messages || (bytes > limits.bytes && messages.count > 1) { removeOldest() }
    }

    /// Removes the messages that are too old.
    mutating func expire(_ now: WallTime) {
        while let oldest = oldest, oldest.time < now - limits.age { removeOldest() }
    }

    /// Removes messages.
    /// - Returns: The number of those removed.
    mutating func remove(where matches: (CaughtMessage) -> Bool) -> Int {
        let numbers = messages.filter { matches($0.value) }.keys
        for number in numbers { remove(number) }
        return numbers.count
    }

    /// The messages with a number above `number`, newest first.
    func newest(after number: UInt64) -> [CaughtMessage] {
        guard number < last else { return [] }
        let numbers = messages.keys.filter { $0 > number }.sorted(by: >)
        return numbers.compactMap { messages[$0] }
    }

    private var oldest: CaughtMessage? {
        mutating get {
            while first < last, messages[first] == nil { first += 1 }
            return messages[first]
        }
    }

    private mutating func removeOldest() {
        _ = oldest
        remove(first)
    }

    private mutating func remove(_ number: UInt64) {
        if let message = messages.removeValue(forKey: number) { bytes -= message.size }
    }
}
