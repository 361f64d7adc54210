import NIOCore

/// Everything that waits on the way to a server, and for its answer.
///
/// It has neither clock nor socket.
///
/// Messages are encoded into one buffer. When the socket has taken the former buffer, the whole next one is handed to it: that is
/// a *write*, and it has a number. What is in no write yet was certainly not sent when the connection ends.
struct Outbox {
    enum State {
        case down(NATSError)
        case up
        /// The server is shutting down: answers are awaited, and nothing new is taken.
        case leaving
    }

    struct Subscriber {
        let subject: String
        let onMessage: @Sendable (NATSMessage) -> Void
    }

    /// Number of the inbox's subscription, to which all answers come.
    static let inboxNumber: UInt64 = 1

    private let limits: NATSLimits
    /// Subject of the inbox up to the token, with the last dot.
    let inbox: ByteBuffer

    private(set) var state: State = .down(.notConnected)
    private(set) var requests: OpenRequests<Request>
    private(set) var info: NATSServerInfo?
    var statistics = NATSConnection.Statistics()

    private var buffer = ByteBuffer()
    /// Buffer of a former write, for its memory.
    private var spare = ByteBuffer()
    /// Number of the write that ``buffer`` becomes.
    private var batch: UInt64 = 1
    /// Bytes that the socket has not taken yet.
    private var bytesInSocket = 0
    private var subscribers: [UInt64: Subscriber] = [:]
    private var lastNumber = Self.inboxNumber
    /// Requests that were refused at once; their callbacks wait for the loop.
    private var refused: [EndedRequest] = []
    private var isWoken = false

    /// Most memory that is kept for the next write, in bytes.
    private static let spareBytes = 1 << 20

    init(limits: NATSLimits, inbox: String) {
        self.limits = limits
        self.inbox = ByteBuffer(string: inbox + ".")
        requests = OpenRequests(limit: limits.requests)
    }

    /// Whether the loop must be woken; false from then on until it has run.
    mutating func needsWake() -> Bool {
        defer { isWoken = true }
        return !isWoken
    }

    // MARK: - Messages out

    /// Adds a message without an answer.
    /// - Returns: The error if nothing is sent.
    mutating func add(_ publish: OutgoingPublish, replyTo: ReplySubject) -> NATSError? {
        if let error = refusal(of: publish) { return error }
        write(publish, replyTo)
        return nil
    }

    /// Adds a message and the request that waits for its answer.
    ///
    /// If it is refused, the request ends at the next ``takeRefused()``.
    mutating func add(_ publish: OutgoingPublish, _ request: Request, now: UInt64, deadline: UInt64) {
        if let error = refusal(of: publish) {
            return refused.append(EndedRequest(request: request, error: error, wasSent: false))
        }
        guard let token = requests.insert(request, batch: batch, now: now, deadline: deadline) else {
            statistics.refusedBusy += 1
            let error = NATSError(.busy, "\(limits.requests) requests to NATS wait for an answer")
            return refused.append(EndedRequest(request: request, error: error, wasSent: false))
        }
        write(publish, .inbox(inbox, token))
    }

    /// Lets a request that cannot be encoded end as not sent.
    mutating func refuse(_ request: Request, _ error: NATSError) {
        refused.append(EndedRequest(request: request, error: error, wasSent: false))
    }

    private mutating func write(_ publish: OutgoingPublish, _ replyTo: ReplySubject) {
        buffer.writePublish(publish, replyTo: replyTo)
        statistics.messagesSent += 1
    }

    private mutating func refusal(of publish: OutgoingPublish) -> NATSError? {
        switch state {
        case .down(let error): return error
        case .leaving: return NATSError(.notConnected, "the NATS server is shutting down")
        case .up: break
        }
        guard SubjectRules.isSubject(publish.subject) else {
            return NATSError(.badMessage, "\"\(publish.subject)\" is not a subject of NATS")
        }
        let headerBytes = publish.headerBytes
        guard headerBytes <= limits.headerBytes else {
            return NATSError(.tooLarge, "\(headerBytes) bytes of headers; the limit is \(limits.headerBytes)")
        }
        let size = headerBytes + publish.payload.readableBytes
        let limit = min(info?.maximumPayload ?? 0, limits.messageBytes)
        guard size <= limit else {
            return NATSError(.tooLarge, "a message of \(size) bytes; NATS accepts \(limit) (max_payload)")
        }
        guard buffer.readableBytes + bytesInSocket + size <= limits.pendingBytes else {
            statistics.refusedBusy += 1
            return NATSError(.busy, "\(limits.pendingBytes) bytes wait for the NATS server, which reads too slowly")
        }
        return nil
    }

    // MARK: - Subscriptions

    mutating func subscribe(_ subscriber: Subscriber) throws(NATSError) -> UInt64 {
        guard SubjectRules.isFilter(subscriber.subject) else {
            throw NATSError(.badMessage, "\"\(subscriber.subject)\" is not a subject of NATS")
        }
        guard subscribers.count < limits.subscriptions else {
            throw NATSError(.busy, "the connection has \(limits.subscriptions) subscriptions")
        }
        lastNumber += 1
        subscribers[lastNumber] = subscriber
        if isLinked { buffer.writeSubscribe(subscriber.subject, number: lastNumber) }
        return lastNumber
    }

    mutating func unsubscribe(_ number: UInt64) {
        guard subscribers.removeValue(forKey: number) != nil, isLinked else { return }
        buffer.writeUnsubscribe(number)
    }

    func subscriber(_ number: UInt64) -> Subscriber? {
        subscribers[number]
    }

    // MARK: - The loop's side

    private var isLinked: Bool {
        if case .down = state { false } else { true }
    }

    /// Takes the next write, if the socket has taken the former one.
    mutating func takeWrite() -> ByteBuffer? {
        isWoken = false
        guard isLinked, bytesInSocket == 0, buffer.readableBytes > 0 else { return nil }
        let write = buffer
        buffer = spare
        spare = ByteBuffer()
        batch += 1
        bytesInSocket = write.readableBytes
        statistics.bytesSent += UInt64(write.readableBytes)
        return write
    }

    /// The socket has taken the write.
    mutating func wrote(_ write: ByteBuffer) {
        bytesInSocket = 0
        guard write.capacity <= Self.spareBytes else { return }
        spare = write
        spare.clear()
    }

    /// Whether nothing waits: neither for the socket nor for an answer.
    var isDrained: Bool {
        requests.count == 0 && buffer.readableBytes == 0 && bytesInSocket == 0
    }

    mutating func takeRefused() -> [EndedRequest] {
        guard !refused.isEmpty else { return [] }
        defer { refused = [] }
        return refused
    }

    /// A server has accepted the connection: subscriptions come first.
    mutating func connect(_ info: NATSServerInfo) {
        state = .up
        self.info = info
        statistics.connects += 1
        buffer.clear()
        buffer.writeSubscribe(String(buffer: inbox) + "*", number: Self.inboxNumber)
        for (number, subscriber) in subscribers.sorted(by: { $0.key < $1.key }) {
            buffer.writeSubscribe(subscriber.subject, number: number)
        }
    }

    /// The server has sent another INFO.
    mutating func update(_ info: NATSServerInfo) {
        self.info = info
    }

    mutating func leave() {
        state = .leaving
    }

    /// The connection has ended.
    /// - Returns: All requests: those of a write may have arrived, the others were not sent.
    mutating func disconnect(_ error: NATSError) -> [EndedRequest] {
        let written = requests.removeAll(before: batch)
        let unwritten = requests.removeAll()
        let kind: NATSError.Kind = error.kind == .closed ? .closed : .notConnected
        state = .down(NATSError(kind, kind == .closed ? error.reason : NATSError.notConnected.reason))
        info = nil
        buffer = ByteBuffer()
        spare = ByteBuffer()
        bytesInSocket = 0
        let lost = NATSError(error.kind == .closed ? .closed : .connectionLost, error.reason)
        let unsent = NATSError(kind, error.reason)
        return written.map { EndedRequest(request: $0, error: lost, wasSent: true) }
            + unwritten.map { EndedRequest(request: $0, error: unsent, wasSent: false) }
    }

    /// Ends the requests whose deadline has passed.
    ///
    /// A request that is still in the buffer will be sent.
    mutating func expire(at now: UInt64) -> [EndedRequest] {
        requests.expire(at: now).map { EndedRequest(request: $0, error: .timeout, wasSent: true) }
    }

    /// Finds the requests of answers.
    ///
    /// One with several answers stays until ``remove(_:)``.
    mutating func requests(for answers: [NATSMessage]) -> [(request: Request, token: UInt64)?] {
        answers.map { answer in
            guard let token = token(answer.subjectBytes), let request = requests.request(token) else {
                statistics.lateAnswers += 1
                return nil
            }
            if case .gather = request { return (request, token) }
            return requests.remove(token).map { ($0, token) }
        }
    }

    mutating func remove(_ token: UInt64) {
        _ = requests.remove(token)
    }

    /// Token at the end of an inbox's subject: small hexadecimal digits without leading zeros.
    private func token(_ subject: ByteBuffer) -> UInt64? {
        let digits = subject.readableBytesView.dropFirst(inbox.readableBytes)
        guard (1...16).contains(digits.count), digits.count == 1 || digits.first != UInt8(ascii: "0") else {
            return nil
        }
        var token: UInt64 = 0
        for digit in digits {
            switch digit {
            case UInt8(ascii: "0")...UInt8(ascii: "9"): token = token << 4 | UInt64(digit - UInt8(ascii: "0"))
            case UInt8(ascii: "a")...UInt8(ascii: "f"): token = token << 4 | UInt64(digit - UInt8(ascii: "a") + 10)
            default: return nil
            }
        }
        return token
    }
}
