package import HeraldModel

/// Lines of the journal that a search wants.
///
/// A line is included if every field includes it. Provider, push type and priority are facts of a request, which only the
/// lines `received` and `refused` have.
package struct JournalFilter: Sendable {
    /// Wanted and unwanted values of one field.
    package struct Choice<Value: Hashable & Sendable>: Hashable, Sendable {
        /// Nil includes every value, and lines without one.
        package var wanted: Set<Value>?
        package var unwanted: Set<Value> = []

        package init() {}

        package mutating func add(_ values: some Sequence<Value>, isUnwanted: Bool = false) {
            if isUnwanted { unwanted.formUnion(values) } else { wanted = (wanted ?? []).union(values) }
        }

        /// The choice of what the values stand for.
        package func resolved<Other>(_ find: (Value) async throws -> [Other]) async throws -> Choice<Other> {
            var choice = Choice<Other>()
            if let wanted {
                choice.wanted = []
                for value in wanted { choice.add(try await find(value)) }
            }
            for value in unwanted { choice.add(try await find(value), isUnwanted: true) }
            return choice
        }

        func includes(_ value: Value?) -> Bool {
            guard let value else { return wanted == nil }
            return wanted?.contains(value) != false && !unwanted.contains(value)
        }

        /// Whether a value may be included if all values are among some.
        func includesAny(of values: [Value]?) -> Bool {
            guard let values, let wanted else { return true }
            return values.contains(where: wanted.contains)
        }
    }

    /// The app of a line, or the topic of a refused request of which there is no app.
    package enum Topic: Hashable, Sendable {
        case app(AppNumber)
        case name(String)
    }

    /// The reason of a refusal by the service, or the words of a state in parentheses.
    package enum Reason: Hashable, Sendable {
        case refusal(RefusalReason)
        case state(JournalState)
    }

    /// An environment, which knows its apps.
    package struct Environment: Sendable {
        let environment: PushEnvironment
        let isOfApp: @Sendable (AppNumber) -> Bool

        package init(_ environment: PushEnvironment, isOfApp: @escaping @Sendable (AppNumber) -> Bool) {
            self.environment = environment
            self.isOfApp = isOfApp
        }
    }

    /// The provider's identifiers, or the service's own.
    package var ids = Choice<NotificationID>()
    package var topics = Choice<Topic>()
    package var environment: Environment?
    package var devices = Choice<DeviceNumber>()
    package var slots = Choice<Slot>()
    package var states = Choice<JournalState>()
    package var senders = Choice<SenderNumber>()
    package var reasons = Choice<Reason>()
    package var types = Choice<PushType>()
    package var priorities = Choice<Priority>()
    /// The first moment that is included.
    package var after: WallTime?
    /// The first moment that is not included any more.
    package var before: WallTime?

    package init() {}

    package func includes(_ event: JournalEvent) -> Bool {
        includes(from: event.time.milliseconds, through: event.time.milliseconds)
            && states.includes(event.state)
            && includesIdentifiers(event)
            && topics.includes(event.refusal?.topic.map { .name($0) } ?? .app(event.app))
            && includesEnvironment(event)
            && devices.includes(event.device)
            && slots.includes(event.device.map { Slot(device: $0, app: event.app) })
            && reasons.includes(event.refusal.map { .refusal($0.reason) } ?? .state(event.state))
            && senders.includes(event.request?.sender)
            && types.includes(event.request?.pushType)
            && priorities.includes(event.request?.priority)
    }

    private func includesIdentifiers(_ event: JournalEvent) -> Bool {
        if let wanted = ids.wanted, !wanted.contains(event.id), !wanted.contains(event.uniqueID) { return false }
        return !ids.unwanted.contains(event.id) && !ids.unwanted.contains(event.uniqueID)
    }

    private func includesEnvironment(_ event: JournalEvent) -> Bool {
        guard let environment else { return true }
        if let refusal = event.refusal { return refusal.environment == environment.environment }
        return environment.isOfApp(event.app)
    }

    /// Whether lines between two moments may be included, in milliseconds since 1970.
    package func includes(from first: Int64, through last: Int64) -> Bool {
        if let after, last < after.milliseconds { return false }
        if let before, first >= before.milliseconds { return false }
        return true
    }

    /// Whether any of the lines of which a summary tells may be included.
    package func mayInclude(_ summary: JournalSummary) -> Bool {
        includes(from: summary.firstTime, through: summary.lastTime)
            && summary.states & stateBits != 0
            && includesApp(summary.apps)
            && senders.includesAny(of: summary.senders)
            && includesReason(summary)
    }

    private var stateBits: UInt64 {
        let wanted = states.wanted.map { $0.reduce(0) { $0 | JournalSummary.bit($1) } } ?? .max
        return states.unwanted.reduce(wanted) { $0 & ~JournalSummary.bit($1) }
    }

    private func includesApp(_ apps: [AppNumber]?) -> Bool {
        guard let apps else { return true }
        let hasAppless = apps.contains(JournalRefusal.noApp)
        if let topics = topics.wanted {
            let hasAny = topics.contains { topic in
                switch topic {
                case .app(let app): apps.contains(app)
                case .name: hasAppless
                }
            }
            guard hasAny else { return false }
        }
        if let slots = slots.wanted, !slots.contains(where: { apps.contains($0.app) }) { return false }
        if let environment, !hasAppless, !apps.contains(where: environment.isOfApp) { return false }
        return true
    }

    private func includesReason(_ summary: JournalSummary) -> Bool {
        guard let wanted = reasons.wanted else { return true }
        return wanted.contains { reason in
            switch reason {
            case .refusal(let reason): summary.reasons & JournalSummary.bit(reason) != 0
            case .state(let state): summary.states & JournalSummary.bit(state) != 0
            }
        }
    }
}
