import Foundation

/// The records of what the user saw: the newest are kept, in memory and, where the device keeps anything, in a file.
///
/// One record a line; a later line about a notification replaces the earlier one. The file is rewritten when it is twice
/// as long as what it holds may be.
final class SawFile {
    /// How many records are kept.
    static let limit = 10_000

    private let path: String?
    private let limit: Int
    private var records: [String: SawRecord] = [:]
    /// The `apns-id`s, oldest first, from `first` on.
    private var order: [String] = []
    private var first = 0
    private var lines = 0
    private(set) var descriptor: CInt = -1

    /// Reads what is there; without a path records are kept in memory alone.
    init(_ path: String?, limit: Int = SawFile.limit) throws {
        self.path = path
        self.limit = limit
        guard let path else { return }
        let bytes = try AgentFile.read(path, limit: 512 << 20) ?? []
        let decoder = JSONDecoder()
        for line in bytes.split(separator: UInt8(ascii: "\n")) {
            lines += 1
            // The last line is half a one after a crash; its notification was not acknowledged and comes again.
            if let record = try? decoder.decode(SawRecord.self, from: Data(line)) { keep(record) }
        }
        let isWhole = bytes.isEmpty || bytes.last == UInt8(ascii: "\n")
        if !isWhole || lines > 2 * limit { try rewrite() } else { try openFile() }
    }

    deinit {
        if descriptor >= 0 { close(descriptor) }
    }

    subscript(id: String) -> SawRecord? { records[id] }

    /// Records what was seen, and what became of it; durable when this returns.
    func take(_ orders: [PhoneOrder]) throws {
        var changed: [SawRecord] = []
        for order in orders {
            switch order {
            case .record(let record) where !record.apnsID.isEmpty:
                keep(record)
                changed.append(record)
            case .amend(let id, let amendment):
                guard var record = records[id] else { continue }
                record.amend(amendment)
                records[id] = record
                changed.append(record)
            default: continue
            }
        }
        guard let path, !changed.isEmpty else { return }
        lines += changed.count
        guard lines <= 2 * limit else { return try rewrite() }
        do {
            try AgentFile.write(try changed.flatMap(Self.line), to: descriptor, path)
            guard fsync(descriptor) == 0 else { throw AgentFile.failure("cannot write", path) }
        } catch {
            // Half a line may be there, which the next one would join: the next writes the file anew.
            lines = 2 * limit
            throw error
        }
    }

    private func keep(_ record: SawRecord) {
        guard records.updateValue(record, forKey: record.apnsID) == nil else { return }
        order.append(record.apnsID)
        guard records.count > limit else { return }
        records[order[first]] = nil
        first += 1
        guard first >= limit else { return }
        order.removeFirst(first)
        first = 0
    }

    private func rewrite() throws {
        guard let path else { return }
        let kept = order[first...].compactMap { records[$0] }
        try AgentFile.replace(path, with: try kept.flatMap(Self.line))
        lines = kept.count
        try openFile()
    }

    private func openFile() throws {
        guard let path else { return }
        if descriptor >= 0 { close(descriptor) }
        descriptor = open(path, O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { throw AgentFile.failure("cannot write", path) }
    }

    private static func line(_ record: SawRecord) throws -> [UInt8] {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        return Array(try encoder.encode(record)) + [UInt8(ascii: "\n")]
    }
}

extension SawRecord {
    mutating func amend(_ amendment: SawAmendment) {
        switch amendment {
        case .replaced(let id): replacedBy = id
        case .answered(let answer): self.answer = answer
        case .ranInBackground(let outcome): background = outcome
        }
    }
}
