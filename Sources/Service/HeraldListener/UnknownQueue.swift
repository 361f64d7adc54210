import NIOCore

/// A connection whose client is not authenticated.
struct UnknownConnection<Connection> {
    let connection: Connection
    let accepted: NIODeadline
    /// nil until a load balancer has reported the client's address.
    var network: ClientNetwork?
    var stage: UnknownStage
    var isOverdue = false
}

/// The progress of an unknown connection.
enum UnknownStage: Hashable {
    /// Its TLS handshake has not begun: the client is silent, or waits for its turn.
    case waiting
    /// Its TLS handshake has begun, or is over.
    case begun
    /// It is overdue, knows it, and ends within the notice.
    case notified
}

/// Numbers of unknown connections in the order of their arrival in the queue.
///
/// A number that leaves stays in the array until it comes to the front, or until most are of that kind. So each operation
/// takes constant time on average.
struct UnknownQueue {
    private var numbers: [UInt64] = []
    private var head = 0
    private(set) var count = 0
    /// The stage of the queue's connections; nil for those that are not overdue, in any stage.
    private let stage: UnknownStage?

    init(_ stage: UnknownStage? = nil) {
        self.stage = stage
    }

    mutating func append(_ number: UInt64) {
        numbers.append(number)
        count += 1
    }

    mutating func first<Connection>(of present: [UInt64: UnknownConnection<Connection>]) -> UInt64? {
        while head < numbers.count {
            if has(present[numbers[head]]) { return numbers[head] }
            head += 1
        }
        return nil
    }

    /// One number has left, and its connection shows it.
    mutating func noteRemoval<Connection>(of present: [UInt64: UnknownConnection<Connection>]) {
        count -= 1
        guard numbers.count > 2 * count + 64 else { return }
        numbers = numbers[head...].filter { has(present[$0]) }
        head = 0
    }

    private func has<Connection>(_ connection: UnknownConnection<Connection>?) -> Bool {
        guard let connection else { return false }
        return stage.map { $0 == connection.stage } ?? !connection.isOverdue
    }
}

/// The unknown connections of a listener or of one network, a queue for each stage.
struct UnknownStages {
    private var waiting = UnknownQueue(.waiting)
    private var begun = UnknownQueue(.begun)
    private var notified = UnknownQueue(.notified)

    var count: Int { waiting.count + begun.count + notified.count }

    /// The connection that makes way: one under notice, or else the oldest of the longer queue.
    ///
    /// So a crowd of silent clients displaces itself and no handshake that is under way, and a crowd that only begins
    /// handshakes displaces nobody who waits for a turn.
    mutating func next<Connection>(of present: [UInt64: UnknownConnection<Connection>]) -> UInt64? {
        if notified.count > 0 { return notified.first(of: present) }
        return waiting.count >= begun.count ? waiting.first(of: present) : begun.first(of: present)
    }

    // No subscript: getting and setting a queue would copy it.

    mutating func append(_ number: UInt64, to stage: UnknownStage) {
        switch stage {
        case .waiting: waiting.append(number)
        case .begun: begun.append(number)
        case .notified: notified.append(number)
        }
    }

    mutating func noteRemoval<Connection>(
        from stage: UnknownStage,
        of present: [UInt64: UnknownConnection<Connection>]
    ) {
        switch stage {
        case .waiting: waiting.noteRemoval(of: present)
        case .begun: begun.noteRemoval(of: present)
        case .notified: notified.noteRemoval(of: present)
        }
    }
}
