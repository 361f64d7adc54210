package import HeraldIdentity
import HeraldModel
import Synchronization

/// Makes the team whose request is accepted first the owner of its topic.
///
/// 1. A request that needs a topic without an owner reserves it. So of two teams one wins at once, without a disk.
/// 2. A refused request gives its reservation back, and claims nothing.
/// 3. An accepted request waits for its claim to be durable before it is answered. So a crash loses no claim that a provider
///    may rely on.
/// 4. If the ledger fails or is too slow, the claim is undecided: the provider is told to send again. Until a slow write
///    has ended, further requests for the topic are undecided, too.
///
/// Only requests for topics without an owner come here.
package final class FirstUses: Sendable {
    /// The decision on a request.
    package enum Decision: Sendable {
        /// The team owns the topic meanwhile.
        case owned
        /// The team may claim the topic.
        case reserved(Reservation)
        /// Another team has the topic.
        case taken
        /// The team has as many claims by use as it may have. The topic stays without an owner.
        case overLimit
        /// The ledger is too slow over an earlier claim of the topic.
        case undecided
    }

    /// The outcome of the claim of an accepted request.
    package enum Outcome: Hashable, Sendable {
        /// The ledger has decided, in favour of this team or another.
        case decided
        /// The ledger has failed or is too slow.
        case undecided
    }

    /// The reservation of a topic for one request.
    package struct Reservation: Sendable {
        let use: TopicUse
        let number: UInt64
    }

    /// An event for the operator's log.
    package enum Event: Sendable {
        case claimed(TopicUse)
        /// Another process was faster.
        case lost(TopicUse, owner: String?)
        case failed(TopicUse, TrustError)
        /// Once for each team.
        case overLimit(TopicUse)
    }

    package typealias Answer = @Sendable (Outcome) -> Void

    /// The interval of ``expireClaims()``: an answer waits for a claim twice as long at most.
    ///
    /// 2 s: a ledger that works takes milliseconds.
    package static let patience = Duration.seconds(2)

    /// The reservations of one topic for one team.
    private struct Reserved {
        let team: String
        let number: UInt64
        /// The number of undecided requests.
        var requests = 1
        /// The answers that wait for the claim; nil if none is under way.
        var waiting: [Answer]?
        /// Whether the claim was under way at the last ``expireClaims()``.
        var isOld = false
        /// Whether the claim's answers were given without it.
        var isOverdue = false
    }

    private struct State {
        var reserved: [Topic: Reserved] = [:]
        var lastNumber: UInt64 = 0
        var reservedCounts: [String: Int] = [:]
        var limited: Set<String> = []
        var isOver = false
    }

    private enum Job: Sendable {
        case claim(Reservation)
        case report(Event)
    }

    private let tokens: ProviderTokenVerifier
    private let state = Mutex(State())
    private let jobs: AsyncStream<Job>
    private let queue: AsyncStream<Job>.Continuation

    init(tokens: ProviderTokenVerifier) {
        self.tokens = tokens
        (jobs, queue) = AsyncStream.makeStream()
    }

    /// Decides on a request of a team for a topic that had no owner when the request was authorized.
    package func reserve(_ use: TopicUse) -> Decision {
        state.withLock { state in
            if let reserved = state.reserved[use.topic] {
                guard !reserved.isOverdue else { return .undecided }
                guard reserved.team == use.team else { return .taken }
                state.reserved[use.topic]?.requests += 1
                return .reserved(Reservation(use: use, number: reserved.number))
            }
            // Under the lock: a reservation ends after its claim is in effect.
            let claims = tokens.credentials.claims
            if let owner = claims.owner(of: use.topic) { return owner == use.team ? .owned : .taken }
            let count = claims.useCount(of: use.team) + (state.reservedCounts[use.team] ?? 0)
            guard count < TopicClaims.maximumUses else {
                if state.limited.insert(use.team).inserted { queue.yield(.report(.overLimit(use))) }
                return .overLimit
            }
            state.lastNumber += 1
            state.reserved[use.topic] = Reserved(team: use.team, number: state.lastNumber)
            state.reservedCounts[use.team, default: 0] += 1
            return .reserved(Reservation(use: use, number: state.lastNumber))
        }
    }

    /// Gives back the reservation of a refused request.
    package func cancel(_ reservation: Reservation) {
        state.withLock { state in
            let topic = reservation.use.topic
            guard var reserved = state.reserved[topic], reserved.number == reservation.number else { return }
            reserved.requests -= 1
            if reserved.requests > 0 || reserved.waiting != nil {
                state.reserved[topic] = reserved
            } else {
                Self.remove(reserved, of: topic, from: &state)
            }
        }
    }

    /// Claims the topic of an accepted request.
    ///
    /// `answer` is called once, from any thread, when the claim is durable or undecided.
    package func claim(_ reservation: Reservation, _ answer: @escaping Answer) {
        let outcome = state.withLock { state -> Outcome? in
            let topic = reservation.use.topic
            guard state.reserved[topic]?.number == reservation.number else {
                // The claim of an earlier request has ended.
                return tokens.credentials.claims.owner(of: topic) == nil ? .undecided : .decided
            }
            // In place: thousands of answers may wait.
            state.reserved[topic]?.requests -= 1
            guard !state.isOver, state.reserved[topic]?.isOverdue == false else { return .undecided }
            if state.reserved[topic]?.waiting == nil {
                state.reserved[topic]?.waiting = [answer]
                queue.yield(.claim(reservation))
            } else {
                state.reserved[topic]?.waiting?.append(answer)
            }
            return nil
        }
        if let outcome { answer(outcome) }
    }

    /// Makes claims durable until the task is cancelled; `write` writes a claim and applies it to the credentials.
    func run(
        _ write: (TopicUse) async throws -> Void,
        _ report: @Sendable (Event) -> Void
    ) async {
        await withDiscardingTaskGroup { group in
            group.addTask {
                while (try? await Task.sleep(for: Self.patience)) != nil { self.expireClaims() }
            }
            for await job in jobs {
                switch job {
                case .report(let event): report(event)
                case .claim(let reservation):
                    guard begin(reservation) else { continue }
                    let event = await claim(reservation.use, write)
                    report(event)
                    let outcome: Outcome = if case .failed = event { .undecided } else { .decided }
                    for answer in end(reservation) { answer(outcome) }
                }
            }
            group.cancelAll()
        }
        for answer in stop() { answer(.undecided) }
    }

    /// Answers the requests whose claim was under way at the call before this one: the ledger is too slow.
    package func expireClaims() {
        let late = state.withLock { state in
            var late: [Answer] = []
            for (topic, var reserved) in state.reserved {
                guard let waiting = reserved.waiting else { continue }
                if reserved.isOld {
                    late += waiting
                    reserved.waiting = []
                    reserved.isOverdue = true
                }
                reserved.isOld = true
                state.reserved[topic] = reserved
            }
            return late
        }
        for answer in late { answer(.undecided) }
    }

    /// Begins to write a claim.
    /// - Returns: false if nobody waits for it any more: then it is given up.
    private func begin(_ reservation: Reservation) -> Bool {
        state.withLock { state in
            let topic = reservation.use.topic
            guard let reserved = state.reserved[topic], reserved.number == reservation.number else { return false }
            if reserved.isOverdue { Self.remove(reserved, of: topic, from: &state) }
            return !reserved.isOverdue
        }
    }

    /// Ends a claim.
    /// - Returns: The answers that wait for it.
    private func end(_ reservation: Reservation) -> [Answer] {
        state.withLock { state in
            let topic = reservation.use.topic
            guard let reserved = state.reserved[topic] else { return [] }
            Self.remove(reserved, of: topic, from: &state)
            return reserved.waiting ?? []
        }
    }

    private func stop() -> [Answer] {
        state.withLock { state in
            state.isOver = true
            let waiting = state.reserved.values.flatMap { $0.waiting ?? [] }
            state.reserved = [:]
            state.reservedCounts = [:]
            return waiting
        }
    }

    private func claim(_ use: TopicUse, _ write: (TopicUse) async throws -> Void) async -> Event {
        do {
            try await write(use)
            let owner = tokens.credentials.claims.owner(of: use.topic)
            return owner == use.team ? .claimed(use) : .lost(use, owner: owner)
        } catch {
            return .failed(use, error as? TrustError ?? TrustError(.unexpected, "the ledger cannot be written"))
        }
    }

    private static func remove(_ reserved: Reserved, of topic: Topic, from state: inout State) {
        state.reserved[topic] = nil
        let count = (state.reservedCounts[reserved.team] ?? 1) - 1
        state.reservedCounts[reserved.team] = count > 0 ? count : nil
    }
}
