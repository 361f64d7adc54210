import HeraldGateway

/// One question of the exam: what happens to a sender, and what it must not do.
package struct Scenario: Sendable {
    /// The party that asks for it.
    package enum Level: String, Codable, Sendable {
        /// Apple's documents or an RFC.
        case required
        /// Good practice.
        case recommended
        /// Seen in the field.
        case seen
    }

    /// One step of a scenario.
    enum Step: Sendable {
        /// Starts a drill, for all pushes or for the one at an index.
        case drill(Drill.Kind, push: Int? = nil, first: Int? = nil)
        case endDrills
        /// Asks the sender for pushes.
        case send(Int, PushShape = .plain)
        /// Waits until the sender has said what became of each push, or has been silent for too long.
        case settle
        /// Waits until Herald has looked at so many requests, or the sender has been silent for too long.
        case requests(Int)
        /// Moves the service's clock.
        case advance(Duration)
        /// Stops the service and starts it again.
        case restart
        /// Starts the service again with a certificate that the sender must refuse.
        case impersonate(Impostor)
    }

    /// Lower-case words and hyphens.
    package let id: String
    package let level: Level
    /// The event, in a few words.
    package let title: String
    /// The document that asks for it: RFC and section, Apple's page; or where it was seen.
    package let source: String
    private(set) var steps: [Step] = []
    private(set) var expectation = Expectation()

    init(_ id: String, _ level: Level, _ title: String, by source: String) {
        (self.id, self.level, self.title, self.source) = (id, level, title, source)
    }

    func steps(_ steps: Step...) -> Scenario {
        var scenario = self
        scenario.steps = steps
        return scenario
    }

    func expects(_ expectation: Expectation) -> Scenario {
        var scenario = self
        scenario.expectation = expectation
        return scenario
    }

    var pushes: Int {
        steps.reduce(0) { count, step in if case .send(let number, _) = step { count + number } else { count } }
    }

    /// Whether it needs a sender that lives through several batches.
    var needsOneProcess: Bool {
        steps.count { if case .send = $0 { true } else { false } } > 1
    }

    /// Whether the sender must learn more of a push than its device token and a payload.
    var needsOrders: Bool {
        steps.contains { step in
            guard case .send(_, let shape) = step else { return false }
            return shape.expiration != nil || shape.collapseID != nil || shape.bytes != nil || shape.pushType != "alert"
        }
    }

    /// Whether times of Herald and of the sender cannot be compared.
    var movesClock: Bool {
        steps.contains { if case .advance = $0 { true } else { false } }
    }
}

/// A certificate that a sender must refuse.
enum Impostor: Sendable {
    /// Of an authority that the sender does not know.
    case foreignAuthority
    /// Of an authority that the sender knows, for another name.
    case foreignName
}

/// The properties of the pushes of a batch.
struct PushShape: Sendable {
    var pushType = "alert"
    var priority = 10
    /// From now on; negative for the past, nil for none.
    var expiration: Duration?
    var collapseID: String?
    /// The length of the payload, in bytes; nil for a short one.
    var bytes: Int?
    /// The length of the device token, in bytes; nil for a token of Herald's.
    var tokenBytes: Int?

    static let plain = PushShape()
}

extension Scenario {
    /// All scenarios, in the order in which they are played.
    package static let all =
        ConnectionScenarios.all + TokenScenarios.all + RefusalScenarios.all + ContentScenarios.all
}
