import CPosix
import Dispatch
import Foundation
import HeraldConsole
import HeraldMailbox
import HeraldModel
import Logging
import Synchronization

/// The audit: one line of JSON for each change in `audit/audit.jsonl`, and for each attempt in `audit/refused.jsonl`.
///
/// They are apart so that attempts, which anybody can make, push no change out. A queue of its own writes, so that a disk that
/// stalls stops nobody.
final class AuditFile: ConsoleAudit {
    /// The longest file, in bytes.
    static let maximumBytes = 16 << 20
    /// The number of files of each kind.
    static let maximumFiles = 8
    /// More lines that wait for the disk are dropped.
    static let maximumWaiting = 4096

    private struct State {
        var throttle = AuditThrottle()
        /// Whether the counts without a line are going to be written.
        var isResting = false
        var waiting = 0
        var dropped = 0
        /// Whether the log has the fault of the disk.
        var isFailing = false
        /// Number of the last line; nil before the files were looked at.
        var last: Int?
    }

    private let changes: AuditLines
    private let refusals: AuditLines
    private let clock: any WallClock
    private let logger: Logger
    private let queue = DispatchQueue(label: "herald.audit", qos: .utility)
    private let state = Mutex(State())

    init(
        folder: String,
        maximumBytes: Int = AuditFile.maximumBytes,
        clock: any WallClock = ServiceClock(),
        logger: Logger
    ) {
        changes = AuditLines(path: folder + "/audit.jsonl", maximumBytes: maximumBytes)
        refusals = AuditLines(path: folder + "/refused.jsonl", maximumBytes: maximumBytes)
        self.clock = clock
        self.logger = logger
    }

    func write(_ entry: AuditEntry) {
        let (line, rests) = state.withLock { state in
            let line = state.throttle.line(entry, at: clock.now())
            defer { if line == nil { state.isResting = true } }
            return (line, line == nil && !state.isResting)
        }
        if let line { add(line) }
        guard rests else { return }
        queue.asyncAfter(deadline: .now() + .seconds(Int(AuditThrottle.interval.components.seconds))) { [weak self] in
            self?.addRest()
        }
    }

    func read(limit: Int, before: Int?) async throws -> [AuditEntry] {
        addRest()
        return await withCheckedContinuation { continuation in
            queue.async { continuation.resume(returning: self.newest(limit, before: before)) }
        }
    }

    /// Waits until all lines are written.
    func close() {
        addRest()
        queue.sync {}
    }

    /// Adds the lines of what was only counted.
    private func addRest() {
        let rest = state.withLock { state in
            state.isResting = false
            return state.throttle.rest()
        }
        rest.forEach(add)
    }

    private func add(_ entry: AuditEntry) {
        let isTaken = state.withLock { state in
            guard state.waiting < Self.maximumWaiting else {
                state.dropped += 1
                return false
            }
            state.waiting += 1
            return true
        }
        guard isTaken else { return }
        queue.async { self.append(entry) }
    }

    // MARK: - On the queue

    private func append(_ entry: AuditEntry) {
        let number = (state.withLock { $0.last } ?? newest(1, before: nil).first?.id ?? 0) + 1
        var entry = entry
        entry.id = number
        do {
            let encoder = JSONEncoder()
            encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
            let line = Array(try encoder.encode(entry)) + [UInt8(ascii: "\n")]
            try (entry.isRefused ? refusals : changes).append(line)
            finish(last: number, error: nil)
        } catch {
            finish(last: number - 1, error: error)
        }
    }

    private func finish(last: Int, error: (any Error)?) {
        let (isNew, dropped) = state.withLock { state in
            state.waiting -= 1
            state.last = last
            defer {
                state.isFailing = error != nil
                state.dropped = 0
            }
            return (error != nil && !state.isFailing, state.dropped)
        }
        if let error, isNew {
            logger.warning("the audit cannot be written: changes go on without it", error: error)
        }
        if dropped > 0 {
            logger.warning("the audit lost lines: the disk was too slow", metadata: ["lines": "\(dropped)"])
        }
    }

    private func newest(_ limit: Int, before: Int?) -> [AuditEntry] {
        let found = changes.newest(limit, before: before) + refusals.newest(limit, before: before)
        return Array(found.sorted { $0.id > $1.id }.prefix(limit))
    }
}

/// Lines in a file; a full one becomes `FILE.1`, and so on.
private struct AuditLines {
    package let path: String
    package let maximumBytes: Int

    package func append(_ line: [UInt8]) throws {
        var descriptor = try open()
        defer { Foundation.close(descriptor) }
        var size = lseek(descriptor, 0, SEEK_END)
        if size > 0, Int(size) + line.count > maximumBytes {
            rotate()
            let full = descriptor
            descriptor = try open()
            Foundation.close(full)
            size = lseek(descriptor, 0, SEEK_END)
        }
        do {
            try SafeFile.writeAll(line, to: descriptor, path)
        } catch {
            // Half a line would spoil the next one.
            ftruncate(descriptor, size)
            throw error
        }
    }

    private func open() throws -> CInt {
        let descriptor = Foundation.open(path, O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { throw SafeFile.failure("cannot write", path) }
        return descriptor
    }

    private func rotate() {
        for number in stride(from: AuditFile.maximumFiles - 1, to: 0, by: -1) {
            rename(name(number - 1), name(number))
        }
    }

    private func name(_ number: Int) -> String { number == 0 ? path : "\(path).\(number)" }

    /// The newest lines with smaller numbers than `before`, or of all; newest first.
    package func newest(_ limit: Int, before: Int?) -> [AuditEntry] {
        var found: [AuditEntry] = []
        let decoder = JSONDecoder()
        for number in 0..<AuditFile.maximumFiles where found.count < limit {
            guard let content = try? Data(contentsOf: URL(fileURLWithPath: name(number)), options: .mappedIfSafe) else {
                continue
            }
            var end = content.endIndex
            while end > content.startIndex, found.count < limit {
                let start = content[..<(end - 1)].lastIndex(of: UInt8(ascii: "\n")).map { $0 + 1 } ?? content.startIndex
                // A damaged line is left out.
                if let entry = try? decoder.decode(AuditEntry.self, from: content[start..<end]),
                    before.map({ entry.id < $0 }) ?? true
                {
                    found.append(entry)
                }
                end = start
            }
        }
        return found
    }
}
