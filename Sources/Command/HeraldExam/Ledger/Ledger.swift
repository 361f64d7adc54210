import Foundation
import HeraldGateway
import HeraldModel
import Synchronization

/// A push that the exam asks a sender for.
struct ExamPush: Sendable {
    let number: Int
    /// The device token, in hexadecimal.
    let token: String
    /// A JSON object.
    let payload: String
    let shape: PushShape
    /// Seconds since 1970; nil for none.
    let expiration: Int64?

    var isExpired: Bool { shape.expiration.map { $0 < .zero } ?? false }
}

/// A request of the sender, as Herald saw it.
struct ExamRequest: Sendable {
    let time: WallTime
    let isAccepted: Bool
    /// The status of the answer; nil if there was none.
    let status: Int?
    let answered: WallTime?
    let reason: String?
    /// The `apns-id` that the sender gave.
    let apnsID: String?
    let headers: [String: String]
    let payload: [UInt8]
    let connection: ObjectIdentifier
    let providerToken: Int?
}

/// The word of a sender on a push.
struct ExamWord: Sendable {
    enum Outcome: String, Codable, Sendable {
        case accepted
        case refused
        case failed
        case unknown
    }

    let outcome: Outcome
    var status: Int?
    var reason: String?
    let time: WallTime
}

/// A push, the requests for it, and what the sender says.
struct PushRecord: Sendable {
    let push: ExamPush
    var requests: [ExamRequest] = []
    var word: ExamWord?
}

/// The facts about a sender after a scenario.
struct Evidence: Sendable {
    var pushes: [PushRecord] = []
    /// Requests that are for none of the pushes.
    var unmatched = 0
    /// Requests for pushes of an earlier scenario.
    var stale = 0
    /// The time in which the service was stopped and started again.
    var restart: ClosedRange<WallTime>?
    /// Whether the sender's program says what becomes of each push.
    var hasWords = true
    /// Whether the sender may answer before it sends, so that its silence means nothing.
    var answersFirst = false
    /// Whether a program that gives no words reported a failure.
    var hasFailed = false
    var movesClock = false

    var requests: [ExamRequest] { pushes.flatMap(\.requests) }
    var connections: Int { Set(requests.map(\.connection)).count }
    var providerTokens: Int { Set(requests.compactMap(\.providerToken)).count }
}

/// The ledger of a scenario: pushes asked for, requests seen, words said.
final class Ledger: Sendable {
    private struct State {
        var evidence = Evidence()
        var slots: [Slot: Int] = [:]
        /// The tokens that Herald did not make.
        var tokens: [String: Int] = [:]
        var fault: Undriven?
        var hasEnded = false
        var isClosing = false
        var watchers: [AsyncStream<Void>.Continuation] = []
        /// The last time at which something happened.
        var touched = ContinuousClock.now
    }

    /// More requests than this in a scenario are a storm; the sender is stopped.
    static let storm = 1000

    private let scenario: String
    private let state: Mutex<State>

    init(scenario: String, hasWords: Bool, answersFirst: Bool = false, movesClock: Bool) {
        self.scenario = scenario
        var first = State()
        first.evidence.hasWords = hasWords
        first.evidence.answersFirst = answersFirst
        first.evidence.movesClock = movesClock
        state = Mutex(first)
    }

    /// The mark of a push in its payload.
    func mark(_ number: Int) -> String { "\(scenario)/\(number)" }

    func add(_ push: ExamPush, slot: Slot?) {
        change { state in
            if let slot { state.slots[slot] = push.number } else { state.tokens[push.token] = push.number }
            state.evidence.pushes.append(PushRecord(push: push))
        }
    }

    func note(_ message: CaughtMessage) {
        guard let connection = message.connection else { return }
        let request = ExamRequest(
            time: message.time,
            isAccepted: message.isAccepted,
            status: message.status,
            answered: message.answered,
            reason: message.reason,
            apnsID: message.headers["apns-id"],
            headers: message.headers,
            payload: message.payload,
            connection: ObjectIdentifier(connection),
            providerToken: message.providerToken
        )
        let mark = Self.mark(in: message.payload)
        change { state in
            guard mark.map({ $0.scenario == scenario }) ?? (message.slot.map { state.slots[$0] != nil } ?? true) else {
                state.evidence.stale += 1
                return
            }
            // A sender that is not an adapter puts the mark of the first push into all of them.
            let number =
                message.slot.flatMap { state.slots[$0] } ?? message.unopenedToken.flatMap {
                    state.tokens[$0.lowercased()]
                }
                ?? mark?.number
            guard let number, state.evidence.pushes.indices.contains(number) else {
                state.evidence.unmatched += 1
                return
            }
            state.evidence.pushes[number].requests.append(request)
        }
    }

    /// Notes requests that came faster than they were read.
    func noteMissed(_ count: Int) { change { $0.evidence.unmatched += count } }

    /// Notes that the service was stopped and started again.
    func noteRestart(_ time: ClosedRange<WallTime>) { change { $0.evidence.restart = time } }

    func note(_ word: ExamWord, of number: Int) {
        change { state in
            guard state.evidence.pushes.indices.contains(number) else {
                state.fault = state.fault ?? Undriven("it speaks of a push that nobody asked for (id \(number))")
                return
            }
            guard state.evidence.pushes[number].word == nil else {
                state.fault = state.fault ?? Undriven("it says twice what became of the push with id \(number)")
                return
            }
            state.evidence.pushes[number].word = word
        }
    }

    /// Notes that the programs without words have ended.
    func end() { change { $0.hasEnded = true } }

    /// Notes that a program has ended that says what becomes of each push.
    func end(status: Int32) {
        change { state in
            state.hasEnded = true
            let missing = state.evidence.pushes.count { $0.word == nil }
            guard !state.isClosing, missing > 0 else { return }
            let words = "it ended with status \(status) before it said what became of \(Counted.pushes(missing))"
            state.fault = state.fault ?? Undriven(words)
        }
    }

    /// Notes that the sender reports a failure, of no push in particular.
    func noteFailure() { change { $0.evidence.hasFailed = true } }

    /// Notes that the sender is told to end.
    func close() { state.withLock { $0.isClosing = true } }

    func ended(within patience: Duration) async {
        await wait(until: .now + patience, renewing: nil) { $0.hasEnded }
    }

    func fail(_ fault: Undriven) {
        change { $0.fault = $0.fault ?? fault }
    }

    var evidence: Evidence { state.withLock { $0.evidence } }
    var fault: Undriven? { state.withLock { $0.fault } }

    /// Waits for a condition.
    ///
    /// Ends without it if nothing happens for `patience`, the sender ends, cannot be driven, or makes a storm.
    func wait(_ patience: Duration, until holds: @escaping @Sendable (Evidence) -> Bool) async {
        // A sender that repeats for ever is not waited for for ever.
        await wait(until: .now + patience * 3, renewing: patience) { state in
            let requests = state.evidence.requests.count + state.evidence.unmatched
            return holds(state.evidence) || state.hasEnded || state.fault != nil || requests > Self.storm
        }
    }

    /// Waits for a condition until an end, or until nothing has happened for a while.
    private func wait(
        until end: ContinuousClock.Instant,
        renewing patience: Duration?,
        _ holds: @escaping @Sendable (State) -> Bool
    ) async {
        let (changes, watcher) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
        state.withLock { state in
            state.watchers.append(watcher)
            state.touched = .now
        }
        watcher.yield()
        await withTaskGroup(of: Void.self) { group in
            group.addTask {
                while !Task.isCancelled {
                    let touched = self.state.withLock { $0.touched }
                    let quiet = patience.map { touched + $0 }
                    let next = min(quiet ?? end, end)
                    guard next > .now else { return watcher.finish() }
                    try? await Task.sleep(until: next)
                }
            }
            defer { group.cancelAll() }
            for await _ in changes where state.withLock({ holds($0) }) { return }
        }
    }

    private func change(_ body: (inout State) -> Void) {
        let watchers = state.withLock { state in
            body(&state)
            state.touched = .now
            return state.watchers
        }
        for watcher in watchers { watcher.yield() }
    }

    /// The scenario and the number in the mark of a payload.
    private static func mark(in payload: [UInt8]) -> (scenario: String, number: Int)? {
        struct Marked: Decodable { let exam: String }
        guard let marked = try? JSONDecoder().decode(Marked.self, from: Data(payload)) else { return nil }
        let parts = marked.exam.split(separator: "/")
        guard parts.count == 2, let number = Int(parts[1]) else { return nil }
        return (String(parts[0]), number)
    }
}

/// Why a scenario could not be played with a sender.
struct Undriven: Error, CustomStringConvertible {
    let description: String
    /// Whether the adapter says that its sender cannot do what the scenario needs.
    let isUnsupported: Bool

    init(_ description: String) {
        self.description = description
        isUnsupported = false
    }

    init(unsupported what: String) {
        description = "the sender does not support \(what)"
        isUnsupported = true
    }
}
