import CPosix
import Dispatch
import Foundation
import HeraldConsole
import Logging
import Synchronization

/// The audit in `audit/audit.jsonl`: one line of JSON for each change.
///
/// A queue of its own writes, so that a disk that stalls stops nobody. A full file becomes `audit.jsonl.1`, and so on.
final class AuditFile: ConsoleAudit {
    /// The longest file, in bytes.
    static let maximumBytes = 16 << 20
    /// The number of files.
    static let maximumFiles = 8
    /// More lines that wait for the disk are dropped.
    static let maximumWaiting = 4096

    private struct State {
        var waiting = 0
        var dropped = 0
        /// Whether the log has the fault of the disk.
        var isFailing = false
        /// Number of the last line; nil before the file was looked at.
        var last: Int?
    }

    private let path: String
    private let maximumBytes: Int
    private let logger: Logger
    private let queue = DispatchQueue(label: "herald.audit", qos: .utility)
    private let state = Mutex(State())

    init(folder: String, maximumBytes: Int = AuditFile.maximumBytes, logger: Logger) {
        path = folder + "/audit.jsonl"
        self.maximumBytes = maximumBytes
        self.logger = logger
    }

    func write(_ entry: AuditEntry) {
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

    func read(limit: Int, before: Int?) async throws -> [AuditEntry] {
        await withCheckedContinuation { continuation in
            queue.async { continuation.resume(returning: self.newest(limit, before: before)) }
        }
    }

    /// Waits until all lines are written.
    func close() {
        queue.sync {}
    }

    // MARK: - On the queue

    private func append(_ entry: AuditEntry) {
        let number = (state.withLock { $0.last } ?? newest(1, before: nil).first?.id ?? 0) + 1
        var entry = entry
        entry.id = number
        do {
            let encoder = JSONEncoder()
            encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
            try append(Array(try encoder.encode(entry)) + [UInt8(ascii: "\n")])
            finish(last: number, error: nil)
        } catch {
            finish(last: number - 1, error: error)
        }
    }

    private func append(_ line: [UInt8]) throws {
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
        for number in stride(from: Self.maximumFiles - 1, to: 0, by: -1) {
            rename(name(number - 1), name(number))
        }
    }

    private func name(_ number: Int) -> String { number == 0 ? path : "\(path).\(number)" }

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
        var found: [AuditEntry] = []
        let decoder = JSONDecoder()
        for number in 0..<Self.maximumFiles where found.count < limit {
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
