package import HeraldModel

/// Facts of many lines of the journal, which exclude searches that none of the lines can match.
package struct JournalSummary: Hashable, Sendable {
    /// The most apps, and the most senders, of which a summary knows each.
    package static let limit = 64

    /// The earliest and latest time, milliseconds since 1970.
    package var firstTime = Int64.max
    package var lastTime = Int64.min
    /// The states, one bit each, by their raw values.
    package var states: UInt64 = 0
    /// The reasons of refusals by the service, one bit each, by their stored codes.
    package var reasons: UInt64 = 0
    /// Nil if there are more than ``limit``.
    package var apps: [AppNumber]? = []
    /// Nil if there are more than ``limit``.
    package var senders: [SenderNumber]? = []

    package init() {}

    /// Adds what a line says; of a run of lines of one app or sender, the first is enough for it.
    package mutating func add(_ event: JournalEvent, isNewApp: Bool = true, isNewSender: Bool = true) {
        firstTime = min(firstTime, event.time.milliseconds)
        lastTime = max(lastTime, event.time.milliseconds)
        states |= JournalSummary.bit(event.state)
        if event.state == .refusedByService, let refusal = event.refusal {
            reasons |= JournalSummary.bit(refusal.reason)
        }
        if isNewApp { JournalSummary.insert(event.app, &apps) }
        if isNewSender, let request = event.request { JournalSummary.insert(request.sender, &senders) }
    }

    /// Adds what another summary says.
    package mutating func add(_ other: JournalSummary) {
        firstTime = min(firstTime, other.firstTime)
        lastTime = max(lastTime, other.lastTime)
        states |= other.states
        reasons |= other.reasons
        JournalSummary.insert(other.apps, &apps)
        JournalSummary.insert(other.senders, &senders)
    }

    package static func bit(_ state: JournalState) -> UInt64 { 1 << UInt64(state.rawValue & 63) }

    package static func bit(_ reason: RefusalReason) -> UInt64 { 1 << UInt64(reason.storedCode & 63) }

    private static func insert<Value: Equatable>(_ value: Value, _ values: inout [Value]?) {
        guard let last = values?.last, last != value else {
            if values?.isEmpty == true { values = [value] }
            return
        }
        guard let known = values, !known.contains(value) else { return }
        if known.count < limit { values?.append(value) } else { values = nil }
    }

    private static func insert<Value: Equatable>(_ more: [Value]?, _ values: inout [Value]?) {
        guard let more else {
            values = nil
            return
        }
        for value in more { insert(value, &values) }
    }
}
