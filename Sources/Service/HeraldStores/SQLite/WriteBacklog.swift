import HeraldMailbox
import HeraldModel

/// Requests that the writer has taken from the queue and not finished.
struct WriteBacklog {
    private(set) var requests: [WriteRequest] = []
    /// Requests whose callers wait.
    private(set) var urgent = 0
    let queue: WriteQueue
    let reporter: WeakReporter

    /// Takes all requests from the queue.
    mutating func take() {
        urgent += queue.take(into: &requests)
    }

    /// Removes the requests of a durable commit.
    mutating func finish(count: Int, urgent: Int, bytes: Int) {
        requests.removeFirst(count)
        self.urgent -= urgent
        queue.finished(count: count, bytes: bytes)
    }

    /// Answers the first requests with an error.
    ///
    /// `answered` are the indexes of jobs that have their answer already. With `keepsEvents`, removals and journal
    /// events without a waiting caller stay for a later commit.
    mutating func refuse(first count: Int, except answered: Set<Int> = [], keepsEvents: Bool, _ error: StoreError) {
        var kept: [WriteRequest] = []
        var envelopes: [Envelope] = []
        var bytes = 0
        for (index, request) in requests.prefix(count).enumerated() {
            bytes += request.payloadBytes
            if request.isUrgent { urgent -= 1 }
            switch request {
            case .put(let envelope, _, _, let isNew):
                envelopes.append(envelope)
                guard isNew, keepsEvents else { break }
                let notification = envelope.notification
                kept.append(.record(JournalEvent(.received, notification, at: notification.received), nil))
            case .job(let job): if !answered.contains(index) { job.fail(error) }
            case .record(_, let completion?): completion.settle(.refused(.serviceUnavailable))
            case .record(_, nil), .remove: if keepsEvents { kept.append(request) }
            }
        }
        if !envelopes.isEmpty { reporter.current?.failed(envelopes) }
        requests.replaceSubrange(0..<count, with: kept)
        queue.finished(count: count - kept.count, bytes: bytes)
    }

    /// Drops the oldest journal events beyond a limit, so that memory stays bounded while nothing can be written.
    ///
    /// Removals stay, because a notification that is not deleted would be delivered again. Events with a waiting caller
    /// stay too.
    /// - Returns: The number of dropped events.
    mutating func dropEvents(beyond limit: Int) -> Int {
        var surplus = requests.count - limit
        guard surplus > 0 else { return 0 }
        let before = requests.count
        requests.removeAll { request in
            guard surplus > 0, case .record(_, nil) = request else { return false }
            surplus -= 1
            return true
        }
        queue.finished(count: before - requests.count, bytes: 0)
        return before - requests.count
    }
}
