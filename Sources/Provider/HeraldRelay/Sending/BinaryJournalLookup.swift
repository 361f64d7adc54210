import HeraldModel
import Synchronization

/// Looks up notifications that were sent over the binary interface, which has no `apns-id`.
///
/// Herald gives such a notification an `apns-id` that ends with its binary identifier, and that is the end of the relay's
/// own `apns-id`. The journal cannot search by ending, so this reads the topic's newest lines, once for all waiting lookups.
final class BinaryJournalLookup: JournalLookup {
    /// Number of lines to read: the maximum of one answer.
    private static let maximumLines = 10_000
    /// Maximum length of an answer, in bytes.
    private static let maximumBytes = 8 << 20

    private enum NextStep {
        case page(Result<BinaryJournalPage, JournalError>)
        /// The waiting lookup reads the next page, for all that wait.
        case reading
    }

    private struct State {
        var isReading = false
        var waiting: [CheckedContinuation<NextStep, Never>] = []
    }

    private let client: JournalClient
    private let topic: String
    private let state = Mutex(State())

    init(_ client: JournalClient, topic: String) {
        self.client = client
        self.topic = topic
    }

    func result(of id: NotificationID, since start: WallTime) async -> JournalResult {
        switch await page() {
        case .success(let page): page.result(of: BinaryEncoding.identifier(id), since: start)
        case .failure(let error): .unavailable(error.message)
        }
    }

    /// A page whose request started after the call.
    private func page() async -> Result<BinaryJournalPage, JournalError> {
        // A page that is being read may be older than this lookup.
        let next = await withCheckedContinuation { continuation in
            let reads = state.withLock { state in
                guard state.isReading else {
                    state.isReading = true
                    return true
                }
                state.waiting.append(continuation)
                return false
            }
            if reads { continuation.resume(returning: .reading) }
        }
        return switch next {
        case .page(let page): page
        case .reading: await read()
        }
    }

    private func read() async -> Result<BinaryJournalPage, JournalError> {
        let served = state.withLock { state in
            defer { state.waiting = [] }
            return state.waiting
        }
        let answer = await client.lines("topic=\(topic)&limit=\(Self.maximumLines)", upTo: Self.maximumBytes)
        let page = answer.map { answer in
            BinaryJournalPage(answer, isWhole: answer.lines.count < Self.maximumLines)
        }
        for continuation in served { continuation.resume(returning: .page(page)) }
        let next = state.withLock { state -> CheckedContinuation<NextStep, Never>? in
            guard state.waiting.isEmpty else { return state.waiting.removeFirst() }
            state.isReading = false
            return nil
        }
        next?.resume(returning: .reading)
        return page
    }
}

/// The newest journal lines of a topic, by binary identifier.
struct BinaryJournalPage: Sendable {
    private var answer: JournalLines
    private let lines: [UInt32: [JournalLine]]

    /// `answer` has its lines oldest first; `isWhole` says that the journal has no older ones.
    init(_ answer: JournalLines, isWhole: Bool) {
        var lines: [UInt32: [JournalLine]] = [:]
        for line in answer.lines {
            guard let number = Self.number(line.id) else { continue }
            lines[number, default: []].append(line)
        }
        self.lines = lines
        self.answer = answer
        guard !isWhole else { return }
        let oldest = answer.lines.first.flatMap { WallTime(rfc3339: $0.time) } ?? WallTime(milliseconds: .max)
        self.answer.completeSince = max(oldest, answer.completeSince ?? oldest)
    }

    /// The result for a notification; ``JournalResult/forgotten`` if its lines may be older than the page.
    func result(of number: UInt32, since start: WallTime) -> JournalResult {
        answer.result(lines[number] ?? [], since: start)
    }

    /// The binary identifier at the end of an `apns-id` of version 8; nil for other versions.
    private static func number(_ text: String) -> UInt32? {
        guard let id = NotificationID(text), id.high >> 12 & 0xF == 8 else { return nil }
        return BinaryEncoding.identifier(id)
    }
}
