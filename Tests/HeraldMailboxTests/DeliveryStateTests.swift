import HeraldModel
import Testing

@testable import HeraldMailbox

private let newer = NotificationID(high: 0, low: 9)
private let tag = PutTag(fence: 3, delivery: DeliveryNumber(index: 4, stamp: 5))

private let states: [DeliveryState] = [
    .unstored, .singleAttempt, .storing, .stored(sequence: 7), .finishedWhileStoring(.refusedByDevice), .replaced,
    .replacedWhileStoring(by: newer), .ended,
]

private let events: [DeliveryEvent] = [
    .finished(.delivered), .newerAcknowledged(newer), .connectionLost(isEnabled: true),
    .connectionLost(isEnabled: false),
    .registrationEnded, .storageDue(tag), .stored(sequence: 8, isReplaced: false),
    .stored(sequence: 8, isReplaced: true),
    .storeFailed,
]

/// One entry of the table.
struct DeliveryStateRow: Hashable, CustomTestStringConvertible {
    let state: DeliveryState
    let event: DeliveryEvent
    let next: DeliveryState
    let effect: EnvelopeEffect?

    init(_ state: DeliveryState, _ event: DeliveryEvent, _ next: DeliveryState, does effect: EnvelopeEffect? = nil) {
        self.state = state
        self.event = event
        self.next = next
        self.effect = effect
    }

    var testDescription: String { "\(state), \(event)" }
}

/// Every entry that changes something.
private let table: [DeliveryStateRow] = [
    DeliveryStateRow(.unstored, .finished(.delivered), .ended, does: .acceptAndRecord(.delivered)),
    DeliveryStateRow(.singleAttempt, .finished(.delivered), .ended, does: .record(.delivered)),
    DeliveryStateRow(.storing, .finished(.delivered), .finishedWhileStoring(.delivered)),
    DeliveryStateRow(.stored(sequence: 7), .finished(.delivered), .ended, does: .remove(sequence: 7, .delivered)),
    DeliveryStateRow(.replaced, .finished(.delivered), .ended, does: .record(.delivered)),
    DeliveryStateRow(.replacedWhileStoring(by: newer), .finished(.delivered), .finishedWhileStoring(.delivered)),

    DeliveryStateRow(
        .unstored,
        .newerAcknowledged(newer),
        .replaced,
        does: .recordThenAccept(.replaced, replacement: newer)
    ),
    DeliveryStateRow(.storing, .newerAcknowledged(newer), .replacedWhileStoring(by: newer)),
    DeliveryStateRow(
        .stored(sequence: 7),
        .newerAcknowledged(newer),
        .replaced,
        does: .remove(sequence: 7, .replaced, replacement: newer)
    ),

    DeliveryStateRow(.unstored, .connectionLost(isEnabled: true), .storing, does: .store(.unacknowledged, nil)),
    DeliveryStateRow(.singleAttempt, .connectionLost(isEnabled: true), .ended, does: .record(.discardedDeviceOffline)),
    DeliveryStateRow(.stored(sequence: 7), .connectionLost(isEnabled: true), .ended),
    DeliveryStateRow(.replaced, .connectionLost(isEnabled: true), .ended),
    DeliveryStateRow(.unstored, .connectionLost(isEnabled: false), .ended, does: .recordThenAccept(.discardedDisabled)),
    DeliveryStateRow(.singleAttempt, .connectionLost(isEnabled: false), .ended, does: .record(.discardedDeviceOffline)),
    DeliveryStateRow(.stored(sequence: 7), .connectionLost(isEnabled: false), .ended),
    DeliveryStateRow(.replaced, .connectionLost(isEnabled: false), .ended),

    DeliveryStateRow(.unstored, .registrationEnded, .ended, does: .recordThenAccept(.discardedUnregistered)),
    DeliveryStateRow(.singleAttempt, .registrationEnded, .ended, does: .record(.discardedUnregistered)),
    DeliveryStateRow(.storing, .registrationEnded, .ended),
    DeliveryStateRow(.stored(sequence: 7), .registrationEnded, .ended),
    DeliveryStateRow(.finishedWhileStoring(.refusedByDevice), .registrationEnded, .ended),
    DeliveryStateRow(.replaced, .registrationEnded, .ended),
    DeliveryStateRow(.replacedWhileStoring(by: newer), .registrationEnded, .ended),

    DeliveryStateRow(.unstored, .storageDue(tag), .storing, does: .store(.unacknowledged, tag)),

    DeliveryStateRow(.storing, .stored(sequence: 8, isReplaced: false), .stored(sequence: 8)),
    DeliveryStateRow(
        .finishedWhileStoring(.refusedByDevice),
        .stored(sequence: 8, isReplaced: false),
        .ended,
        does: .remove(sequence: 8, .refusedByDevice)
    ),
    DeliveryStateRow(
        .replacedWhileStoring(by: newer),
        .stored(sequence: 8, isReplaced: false),
        .replaced,
        does: .remove(sequence: 8, .replaced, replacement: newer)
    ),
    DeliveryStateRow(.storing, .stored(sequence: 8, isReplaced: true), .stored(sequence: 8)),
    DeliveryStateRow(
        .finishedWhileStoring(.refusedByDevice),
        .stored(sequence: 8, isReplaced: true),
        .ended,
        does: .remove(sequence: 8, .refusedByDevice)
    ),
    DeliveryStateRow(.replacedWhileStoring(by: newer), .stored(sequence: 8, isReplaced: true), .replaced),

    DeliveryStateRow(.storing, .storeFailed, .singleAttempt, does: .settle(.refused(.serviceUnavailable))),
    DeliveryStateRow(
        .finishedWhileStoring(.refusedByDevice),
        .storeFailed,
        .ended,
        does: .acceptAndRecord(.refusedByDevice)
    ),
    DeliveryStateRow(
        .replacedWhileStoring(by: newer),
        .storeFailed,
        .replaced,
        does: .recordThenAccept(.replaced, replacement: newer)
    ),
]

@Suite struct DeliveryStateTests {
    @Test(arguments: table)
    func `an event changes the state and has its effect`(row: DeliveryStateRow) {
        let (next, effect) = row.state.after(row.event)
        #expect(next == row.next && effect == row.effect)
    }

    @Test(arguments: states)
    func `an event that the table does not name changes nothing`(state: DeliveryState) {
        for event in events where !table.contains(where: { $0.state == state && $0.event == event }) {
            let (next, effect) = state.after(event)
            #expect(next == state && effect == nil, "\(event)")
        }
    }

    @Test(arguments: states)
    func `no step answers a provider twice`(state: DeliveryState) {
        // At most one answer: none once the request is settled, and one where it is settled by the end.
        for event in events {
            let (next, effect) = state.after(event)
            if state == .ended || state == .replaced { #expect(effect?.isAnswer != true, "\(event)") }
            if state == .unstored, next == .ended || next == .replaced { #expect(effect?.isAnswer == true, "\(event)") }
        }
    }
}

extension EnvelopeEffect {
    fileprivate var isAnswer: Bool {
        switch self {
        case .acceptAndRecord, .recordThenAccept, .settle: true
        case .store, .remove, .record, .passOn: false
        }
    }
}
