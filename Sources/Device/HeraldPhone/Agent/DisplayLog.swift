import Foundation
import HeraldJSON

/// The newest display records, in memory and, if the device keeps a folder, in a file.
///
/// Each line is a record; a later line replaces an earlier one of the same notification. The file is compacted when it has
/// twice as many lines as records may be kept, or too many bytes.
final class DisplayLog {
    /// The most records.
    static let limit = 10_000
    /// The most bytes in the file; compacted, it has at most half as many, and the oldest records go.
    static let byteLimit = 256 << 20

    private let path: String?
    private let limit: Int
    private let byteLimit: Int
    private var records: [String: DisplayRecord] = [:]
    /// The revision of each record's last change.
    private var revisions: [String: Int] = [:]
    /// The number of changes since the start.
    private(set) var revision = 0
    /// The identifiers of the records, oldest first, from `first` on.
    private var order: [String] = []
    private var first = 0
    private var lines = 0
    private var bytes = 0
    private(set) var descriptor: CInt = -1
    /// A sentence for the user about lines that were set aside.
    private(set) var fault: String?

    /// Reads the file; without a path, records are kept in memory only.
    init(_ path: String?, limit: Int = DisplayLog.limit, byteLimit: Int = DisplayLog.byteLimit) throws {
        self.path = path
        self.limit = limit
        self.byteLimit = byteLimit
        guard let path else { return }
        let content = try AgentFile.read(path, limit: byteLimit) ?? []
        bytes = content.count
        let isWhole = content.isEmpty || content.last == UInt8(ascii: "\n")
        var unreadable: [ArraySlice<UInt8>] = []
        for line in content.split(separator: UInt8(ascii: "\n")) {
            lines += 1
            if let record = try? JSON.decode(DisplayRecord.self, from: Array(line)) {
                keep(record)
            } else if isWhole || line.endIndex < content.endIndex {
                // A crash leaves an incomplete last line. Its notification was not acknowledged, and comes again.
                unreadable.append(line)
            }
        }
        if !unreadable.isEmpty {
            let bytes = unreadable.flatMap { $0 + [UInt8(ascii: "\n")] }
            let aside = try AgentFile.setAside(bytes, of: path)
            let count = unreadable.count == 1 ? "a line" : "\(unreadable.count) lines"
            fault = "\(count) of \(path) cannot be read, and \(unreadable.count == 1 ? "is" : "are") now in \(aside)"
        }
        if !isWhole || !unreadable.isEmpty || lines > 2 * limit { try rewrite() } else { try openFile() }
    }

    deinit {
        if descriptor >= 0 { close(descriptor) }
    }

    /// The record of an `apns-id`, or the newest of a local notification with this identifier.
    subscript(id: String) -> DisplayRecord? {
        records[id] ?? order[first...].last { records[$0]?.local == id }.flatMap { records[$0] }
    }

    /// The newest `limit` records, and of these the ones that changed after `revision`; oldest first.
    func changes(after revision: Int, limit: Int) -> DisplayLogChanges {
        let newest = order[first...].suffix(limit)
        let changed = newest.filter { revisions[$0, default: 0] > revision }
        return DisplayLogChanges(
            revision: self.revision,
            count: records.count,
            records: changed.compactMap { records[$0] }
        )
    }

    /// Writes records and amendments; they are durable when this returns.
    func take(_ effects: [PhoneEffect]) throws {
        var changed: [DisplayRecord] = []
        for effect in effects {
            switch effect {
            case .record(let record) where !record.id.isEmpty:
                keep(record)
                changed.append(record)
            case .amend(let id, let amendment):
                guard var record = records[id] else { continue }
                record.amend(amendment)
                keep(record)
                changed.append(record)
            default: continue
            }
        }
        guard let path, !changed.isEmpty else { return }
        let added = try changed.flatMap(Self.line)
        lines += changed.count
        bytes += added.count
        guard lines <= 2 * limit, bytes <= byteLimit else { return try rewrite() }
        do {
            try AgentFile.write(added, to: descriptor, path)
            guard fsync(descriptor) == 0 else { throw AgentFile.failure("cannot write", path) }
        } catch {
            // There may be an incomplete line. The next call rewrites the file.
            lines = 2 * limit
            throw error
        }
    }

    private func keep(_ record: DisplayRecord) {
        revision += 1
        revisions[record.id] = revision
        guard records.updateValue(record, forKey: record.id) == nil else { return }
        order.append(record.id)
        if records.count > limit { dropOldest() }
    }

    private func dropOldest() {
        records[order[first]] = nil
        revisions[order[first]] = nil
        first += 1
        guard first >= limit else { return }
        order.removeFirst(first)
        first = 0
    }

    private func rewrite() throws {
        guard let path else { return }
        var kept: [[UInt8]] = []
        var size = 0
        for record in order[first...].reversed().lazy.compactMap({ self.records[$0] }) {
            let line = try Self.line(record)
            guard size + line.count <= byteLimit / 2 else { break }
            kept.append(line)
            size += line.count
        }
        try AgentFile.replace(path, with: kept.reversed().flatMap { $0 })
        while records.count > kept.count { dropOldest() }
        lines = kept.count
        bytes = size
        try openFile()
    }

    private func openFile() throws {
        guard let path else { return }
        if descriptor >= 0 { close(descriptor) }
        descriptor = open(path, O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { throw AgentFile.failure("cannot write", path) }
    }

    private static func line(_ record: DisplayRecord) throws -> [UInt8] {
        try JSON.encode(record) + [UInt8(ascii: "\n")]
    }
}

extension DisplayRecord {
    mutating func amend(_ amendment: DisplayAmendment) {
        switch amendment {
        case .replaced(let id): replacedBy = id
        case .responded(let response): self.response = response
        case .ranInBackground(let outcome): background = outcome
        }
    }
}
