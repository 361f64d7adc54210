import CoreMetrics
import HeraldMailbox
import Synchronization

/// Sends rings and their answers: those that arise together travel in one message to each node.
final class RingMessages: Sendable {
    private struct Answers {
        var places: [NodeName: [RungRecord.Place]] = [:]
        var isScheduled = false
    }

    private let messages: any NodeMessages
    private let scheduler: any ClusterScheduler
    private let metrics: RingMetrics
    private let answers = Mutex(Answers())

    init(_ messages: any NodeMessages, scheduler: any ClusterScheduler, metrics: RingMetrics) {
        self.messages = messages
        self.scheduler = scheduler
        self.metrics = metrics
    }

    /// Sends rings at once.
    func send(_ orders: [RingBook.Order]) {
        var batches: [(receiver: NodeName?, bytes: Int, notifications: [PassedNotification])] = []
        for order in orders {
            let notification = order.notification
            let index = batches.lastIndex { $0.receiver == order.receiver }
            if let index, batches[index].bytes < ClusterLimits.ringMessageBytes {
                batches[index].notifications.append(notification)
                batches[index].bytes += notification.bytes
            } else {
                batches.append((order.receiver, notification.bytes, [notification]))
            }
        }
        for batch in batches {
            let body = RingRecord(batch.notifications).body
            if let receiver = batch.receiver {
                messages.send(body, as: .ring, to: receiver)
                metrics.sent.increment(by: batch.notifications.count)
            } else {
                messages.sendToAll(body, as: .ring)
                metrics.repeated.increment(by: batch.notifications.count)
            }
        }
    }

    /// Answers rings, after ``ClusterLimits/ringAnswerPause``.
    func answer(_ places: [RungRecord.Place], to sender: NodeName) {
        guard !places.isEmpty else { return }
        let begins = answers.withLock { answers in
            answers.places[sender, default: []] += places
            defer { answers.isScheduled = true }
            return !answers.isScheduled
        }
        if begins { scheduler.run(after: ClusterLimits.ringAnswerPause) { [weak self] in self?.sendAnswers() } }
    }

    private func sendAnswers() {
        let places = answers.withLock { answers in
            defer { answers = Answers() }
            return answers.places
        }
        for (sender, places) in places.sorted(by: { $0.key.text < $1.key.text }) {
            for part in places.chunks(ofCount: Int(UInt16.max)) {
                messages.send(RungRecord(Array(part)).body, as: .rung, to: sender)
            }
        }
    }
}

/// The metrics of ``NodeRings``.
struct RingMetrics: Sendable {
    let claims = Gauge(label: MetricName.clusterClaims)
    let takeovers = Counter(label: MetricName.clusterTakeovers)
    let passed = Counter(label: MetricName.clusterPassed)
    let sent = Counter(label: MetricName.clusterRings, dimensions: [("kind", "sent")])
    let answered = Counter(label: MetricName.clusterRings, dimensions: [("kind", "answered")])
    let repeated = Counter(label: MetricName.clusterRings, dimensions: [("kind", "repeated")])
    let givenUp = Counter(label: MetricName.clusterRings, dimensions: [("kind", "given_up")])
}
