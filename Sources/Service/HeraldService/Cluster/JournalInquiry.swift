import HeraldConsole
import HeraldModel

/// A query of the journal on its way to another node.
struct JournalInquiry: Codable, Hashable, Sendable {
    private let notification: String?
    private let device: String?
    private let topic: String?
    let limit: Int

    init(_ question: JournalQuestion, limit: Int) {
        var (notification, device, topic): (String?, String?, String?)
        switch question {
        case .notification(let id): notification = id.description
        case .device(let id): device = id.name
        case .topic(let name): topic = name.name
        }
        self.notification = notification
        self.device = device
        self.topic = topic
        self.limit = limit
    }

    /// The query; nil for one that this version of Herald does not know, or that asks for too much.
    var question: JournalQuestion? {
        guard AdminAPI.journalLimits.contains(limit) else { return nil }
        if let notification { return NotificationID(notification).map { .notification($0) } }
        if let device { return DeviceID(device).map { .device($0) } }
        return topic.flatMap { Topic($0) }.map { .topic($0) }
    }
}
