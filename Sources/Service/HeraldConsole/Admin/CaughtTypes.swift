import HeraldJSON
package import HeraldModel
import HeraldWeb

// JSON of what is caught. Times are in UTC with milliseconds.

/// A request of a provider that was kept with its payload and its answer.
package struct CaughtEntry: Codable, SnakeCased, Hashable, Sendable {
    /// The identifier in the answer: `apns-id`, or `apns-request-id` of a broadcast; nil at the binary interface if refused.
    package var id: String?
    package var uniqueID: String?
    package var time: String
    package var environment: PushEnvironment
    /// `http2` or `binary`.
    package var interface: String
    /// Empty if it is unknown.
    package var topic = ""
    /// Empty if it is unknown, and for a broadcast.
    package var device = ""
    /// The credential's identifier, as in the list of credentials.
    package var provider: String?
    /// The status of the answer, at the binary interface that of the error response, 0 for none; nil if a drill gave no answer.
    package var status: Int?
    package var reason: String?
    package var explanation: String?
    /// `retry-after` of the answer, in seconds.
    package var retryAfter: Int?
    /// The time of the answer, a delayed one too; nil without an answer.
    package var answered: String?
    package var headers: [String: String] = [:]
    package var payload = ""
    package var tag: String?
    /// The number of findings of the payload's check.
    package var findings = 0

    package init(id: String?, time: String, environment: PushEnvironment, interface: String) {
        self.id = id
        self.time = time
        self.environment = environment
        self.interface = interface
    }
}

/// The present state of catching.
package struct CatchingState: Codable, Hashable, Sendable {
    /// `off`, `all`, or the topics.
    package let topics: CatchScope
    /// The end of catching; nil if it lasts until the service stops.
    package let until: String?
    package let messages: Int
    /// The most messages that are kept; the newest win.
    package let limit: Int

    package init(topics: CatchScope, until: String?, messages: Int, limit: Int) {
        self.topics = topics
        self.until = until
        self.messages = messages
        self.limit = limit
    }
}

/// JSON `"off"`, `"all"`, or an array of topics.
extension CatchScope: Codable {
    /// The most topics that are caught at once.
    package static let maximum = 1000

    package init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        switch try? container.decode(String.self) {
        case "off": self = .off
        case "all": self = .all
        case _?: throw CatchScope.malformed
        case nil:
            guard let names = try? container.decode([String].self), (1...CatchScope.maximum).contains(names.count)
            else {
                throw CatchScope.malformed
            }
            let topics = try names.map { name in
                guard let topic = Topic(name) else { throw CatchScope.malformed }
                return topic
            }
            self = .topics(Set(topics))
        }
    }

    private static let malformed = WebRefusal(
        400,
        "topics is \"all\", \"off\", or an array of topics like com.example.app"
    )

    package func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        switch self {
        case .off: try container.encode("off")
        case .all: try container.encode("all")
        case .topics(let topics): try container.encode(topics.map(\.name).sorted())
        }
    }
}

/// A request to catch.
package struct CatchRequest: Codable, Hashable, Sendable {
    /// Minutes that an operator may switch it on for.
    package static let minutesRange = 1...1440

    package let topics: CatchScope
    /// Nil for an hour.
    package let minutes: Int?
}

/// A question for what was caught.
package struct CaughtQuestion: Hashable, Sendable {
    package var query: CaughtQuery
    /// The most messages of the answer; the newest.
    package var limit: Int
    /// Messages that must match before it is answered, at least 1.
    package var count = 1
    /// Terms that one of them must match, too; nil for any.
    package var until: CaughtQuery?
    /// How long to wait for that.
    package var wait = Duration.zero
}

/// The answer to a question for what was caught.
package struct CaughtAnswer: Codable, Hashable, Sendable {
    /// Newest first.
    package var items: [CaughtEntry] = []
    /// All that match, also those beyond the limit.
    package var matches = 0
    /// Whether as many match as was asked for; false if the wait ended before.
    package var complete = false
    package var catching: CatchingState

    package init(catching: CatchingState) {
        self.catching = catching
    }
}

/// The number of messages that were removed.
package struct CaughtRemoval: Codable, Hashable, Sendable {
    package let deleted: Int
}
