import HeraldModel
import Synchronization

/// Asks about what was sent by the binary interface, which carries no `apns-id`: Herald gives such a notification one that
/// ends with the provider's number, and the number is the end of the relay's own.
///
/// The journal finds no endings, so the topic's newest lines are read, once for all that ask at a time.
final class BinaryJournalInquiry: Inquiry {
    /// How many lines are read: as many as the journal gives at once.
    private static let maximumLines = 10_000
    /// The longest answer that is read, in bytes.
    private static let maximumBytes = 8 << 20

    private enum Turn {
        case page(Result<JournalPage, JournalFault>)
        /// Reads the next page, for all that wait.
        case reading
    }

    private struct State {
        var isReading = false
        var waiting: [CheckedContinuation<Turn, Never>] = []
    }

    private let door: JournalDoor
    private let topic: String
    private let state = Mutex(State())

    init(_ door: JournalDoor, topic: String) {
        self.door = door
        self.topic = topic
    }

    func standing(of id: NotificationID, since start: WallTime) async -> JournalStanding {
        switch await page() {
        case .success(let page): page.standing(of: BinaryForm.identifier(id), since: start)
        case .failure(let fault): .unavailable(fault.words)
        }
    }

    /// A page that was asked for after the call.
    private func page() async -> Result<JournalPage, JournalFault> {
        let reads = state.withLock { state in
            defer { state.isReading = true }
            return !state.isReading
        }
        if reads { return await read() }
        // What is being read may have been written before the question came up.
        let turn = await withCheckedContinuation { continuation in
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
        return switch turn {
        case .page(let page): page
        case .reading: await read()
        }
    }

    private func read() async -> Result<JournalPage, JournalFault> {
        let served = state.withLock { state in
            defer { state.waiting = [] }
            return state.waiting
        }
        let lines = await door.lines("topic=\(topic)&limit=\(Self.maximumLines)", upTo: Self.maximumBytes)
        let page = lines.map { JournalPage($0, isWhole: $0.count < Self.maximumLines) }
        for continuation in served { continuation.resume(returning: .page(page)) }
        let next = state.withLock { state -> CheckedContinuation<Turn, Never>? in
            guard state.waiting.isEmpty else { return state.waiting.removeFirst() }
            state.isReading = false
            return nil
        }
        next?.resume(returning: .reading)
        return page
    }
}

/// The newest lines of a topic, by the numbers of the binary interface.
struct JournalPage: Sendable {
    /// How far the clocks of the service and of the queue may be apart.
    private static let skew = Duration.seconds(60)

    private let lines: [UInt32: [JournalLine]]
    /// When its oldest line was written; nil if it has all lines that there are.
    private let start: WallTime?

    /// - Parameters:
    ///   - lines: The lines, oldest first.
    ///   - isWhole: Whether the journal has no older ones.
    init(_ lines: [JournalLine], isWhole: Bool) {
        var byNumber: [UInt32: [JournalLine]] = [:]
        for line in lines {
            guard let number = Self.number(line.id) else { continue }
            byNumber[number, default: []].append(line)
        }
        self.lines = byNumber
        start = isWhole ? nil : lines.first.flatMap { WallTime(rfc3339: $0.time) } ?? WallTime(milliseconds: .max)
    }

    /// What became of a notification; ``JournalStanding/unavailable(_:)`` where lines about it may be older than the page.
    func standing(of number: UInt32, since moment: WallTime) -> JournalStanding {
        let standing = JournalStanding(lines[number] ?? [])
        if standing == .notTaken, let start, start > moment - Self.skew {
            return .unavailable("its newest lines do not reach back to when the row was queued")
        }
        return standing
    }

    /// The number that an identifier ends with, if it is one of the binary interface: those have version 8.
    private static func number(_ text: String) -> UInt32? {
        guard let id = NotificationID(text), id.high >> 12 & 0xF == 8 else { return nil }
        return BinaryForm.identifier(id)
    }
}
