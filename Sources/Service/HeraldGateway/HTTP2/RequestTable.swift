import NIOCore

/// The pending requests of one connection: a pool that grows to a limit, and the queue of complete ones.
struct RequestTable {
    private(set) var pool: [PendingRequest] = []
    private var free: [Int] = []
    private let limit: Int
    /// Complete requests, oldest first; those before ``completeRead`` are taken.
    private var complete: [Int] = []
    private var completeRead = 0
    /// Requests that were answered before the client ended them.
    var answersBeforeEnd = 0
    /// Requests that a drill leaves unanswered.
    private var unansweredCount = 0

    init(limit: Int) {
        self.limit = limit
    }

    /// The number of requests that will still be answered.
    var pendingCount: Int { pool.count - free.count - unansweredCount }

    /// A free entry for a new request; nil if the connection has too many.
    mutating func take() -> PendingRequest? {
        if let index = free.popLast() { return pool[index] }
        guard pool.count < limit else { return nil }
        let request = PendingRequest(index: pool.count)
        pool.append(request)
        return request
    }

    /// Releases the entry of a request.
    mutating func release(_ request: PendingRequest) {
        guard request.phase != .free else { return }
        if request.phase == .unanswered { unansweredCount -= 1 }
        request.close()
        free.append(request.index)
    }

    /// Queues a request that is complete.
    mutating func completed(_ request: PendingRequest) {
        request.phase = .complete
        complete.append(request.index)
    }

    /// The oldest complete request that was not taken yet.
    mutating func nextComplete() -> PendingRequest? {
        while completeRead < complete.count {
            let request = pool[complete[completeRead]]
            completeRead += 1
            if request.phase == .complete { return request }
            release(request)
        }
        complete.removeAll(keepingCapacity: true)
        completeRead = 0
        return nil
    }

    /// Leaves a request without an answer until its stream ends.
    mutating func leaveUnanswered(_ request: PendingRequest) {
        request.phase = .unanswered
        request.deadline = nil
        unansweredCount += 1
    }

    /// The request with a number, if it is still pending.
    func request(_ number: UInt64) -> PendingRequest? {
        let index = Int(UInt32(truncatingIfNeeded: number))
        guard index < pool.count else { return nil }
        let request = pool[index]
        return request.phase != .free && request.number == number ? request : nil
    }

    /// Frees the memory of the pool when no request is pending.
    mutating func shrink() {
        guard pool.count == free.count else { return }
        pool = []
        free = []
    }
}
