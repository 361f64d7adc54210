import Foundation
import GRDBSQLite
import Synchronization

/// Fault injection: a disk that fails or loses power on demand, as a layer between SQLite and its real files.
///
/// It records, for each file of one folder, the content at the last sync and the writes since. A power cut gives a new
/// folder with only some of the unsynced writes.
final class FaultyDisk: Sendable {
    /// The calls that fail.
    enum Kind: Sendable {
        case writes
        case syncs
    }

    /// The unsynced writes that are lost.
    enum Loss: Sendable {
        /// None is lost: only the process was killed.
        case nothing
        /// Each write is lost or not, at random.
        case some(seed: UInt64)
        /// All are lost.
        case everything
    }

    private enum Change {
        case write(offset: Int, bytes: [UInt8])
        case truncate(Int)
    }

    private struct Copy {
        var synced: [UInt8] = []
        var changes: [Change] = []
    }

    private struct Plan {
        var code: CInt = SQLITE_OK
        var kind = Kind.writes
        /// Calls that succeed before one fails.
        var countdown = 0
        /// Whether all later calls fail too.
        var isLasting = false
        var writes = 0
        var syncs = 0
        var failures = 0
        /// By file name; nil without a recording.
        var copies: [String: Copy]?
        /// Whether syncs succeed without making anything durable.
        var liesAboutSyncs = false
    }

    private static let watched = Mutex<[(folder: String, disk: FaultyDisk)]>([])
    private let plan = Mutex(Plan())
    private let folder: String
    /// Blocks syncs; a condition, because SQLite calls from a thread that may wait.
    private let standstill = NSCondition()
    /// Guarded by ``standstill``.
    nonisolated(unsafe) private var isStopped = false

    /// Puts the files of a folder on a new faulty disk, which works at first.
    init(folder: String) {
        self.folder = folder
        FaultyLayer.install()
        FaultyDisk.watched.withLock { $0.append((folder, self)) }
    }

    static func watching(_ path: String) -> FaultyDisk? {
        watched.withLock { $0.first { path.hasPrefix($0.folder) }?.disk }
    }

    func remove() {
        FaultyDisk.watched.withLock { $0.removeAll { $0.disk === self } }
    }

    // MARK: - Failures

    /// Makes a call fail with SQLite's code after a number of calls; with `isLasting`, all later ones too.
    func fail(_ kind: Kind, with code: CInt, after count: Int = 0, isLasting: Bool = true) {
        plan.withLock { plan in
            plan.kind = kind
            plan.code = code
            plan.countdown = count
            plan.isLasting = isLasting
            plan.failures = 0
        }
    }

    func heal() {
        plan.withLock { $0.code = SQLITE_OK }
    }

    /// The number of calls, and of failures since the last ``fail(_:with:after:isLasting:)``.
    var calls: (writes: Int, syncs: Int, failures: Int) {
        plan.withLock { ($0.writes, $0.syncs, $0.failures) }
    }

    /// Stalls all syncs, or resumes them.
    func setStopped(_ stopped: Bool) {
        standstill.withLock {
            isStopped = stopped
            standstill.broadcast()
        }
    }

    // MARK: - Power cuts

    /// Starts to record writes; the present content counts as synced.
    ///
    /// No write may run meanwhile.
    func beginRecording(liesAboutSyncs: Bool = false) throws {
        var copies: [String: Copy] = [:]
        for name in try FileManager.default.contentsOfDirectory(atPath: folder) where !name.hasSuffix("-shm") {
            let content = FileManager.default.contents(atPath: folder + "/" + name) ?? Data()
            copies[name] = Copy(synced: Array(content))
        }
        plan.withLock { plan in
            plan.copies = copies
            plan.liesAboutSyncs = liesAboutSyncs
        }
    }

    /// The files after a kill or power cut at this moment.
    func cut(losing loss: Loss) throws -> TemporaryFolder {
        let copies = plan.withLock { $0.copies ?? [:] }
        let folder = try TemporaryFolder()
        var generator = SeededGenerator(loss)
        for (name, copy) in copies.sorted(by: { $0.key < $1.key }) {
            var bytes = copy.synced
            for change in copy.changes where generator.keeps() { FaultyDisk.apply(change, to: &bytes) }
            try Data(bytes).write(to: URL(fileURLWithPath: folder.path + "/" + name))
        }
        return folder
    }

    private static func apply(_ change: Change, to bytes: inout [UInt8]) {
        switch change {
        case .truncate(let size):
            bytes = Array(bytes.prefix(size)) + [UInt8](repeating: 0, count: max(0, size - bytes.count))
        case .write(let offset, let written):
            let end = offset + written.count
            if bytes.count < end { bytes += [UInt8](repeating: 0, count: end - bytes.count) }
            bytes.replaceSubrange(offset..<end, with: written)
        }
    }

    // What the layer asks.

    func write(_ name: String, _ bytes: UnsafeRawBufferPointer, at offset: Int) -> CInt {
        plan.withLock { plan in
            plan.writes += 1
            let code = FaultyDisk.result(of: .writes, &plan)
            if code == SQLITE_OK {
                plan.copies?[name, default: Copy()].changes.append(.write(offset: offset, bytes: Array(bytes)))
            }
            return code
        }
    }

    func truncate(_ name: String, to size: Int) {
        plan.withLock { $0.copies?[name, default: Copy()].changes.append(.truncate(size)) }
    }

    func sync(_ name: String) -> CInt {
        standstill.withLock { while isStopped { standstill.wait() } }
        return plan.withLock { plan in
            plan.syncs += 1
            let code = FaultyDisk.result(of: .syncs, &plan)
            if code == SQLITE_OK, !plan.liesAboutSyncs, var copy = plan.copies?[name] {
                for change in copy.changes { FaultyDisk.apply(change, to: &copy.synced) }
                copy.changes = []
                plan.copies?[name] = copy
            }
            return code
        }
    }

    private static func result(of kind: Kind, _ plan: inout Plan) -> CInt {
        guard plan.code != SQLITE_OK, kind == plan.kind else { return SQLITE_OK }
        guard plan.countdown == 0 else {
            plan.countdown -= 1
            return SQLITE_OK
        }
        let code = plan.code
        plan.failures += 1
        if !plan.isLasting { plan.code = SQLITE_OK }
        return code
    }
}

/// A random generator with a seed (xorshift).
private struct SeededGenerator {
    private let loss: FaultyDisk.Loss
    private var state: UInt64

    init(_ loss: FaultyDisk.Loss) {
        self.loss = loss
        state = if case .some(let seed) = loss { seed &* 0x9E37_79B9_7F4A_7C15 | 1 } else { 1 }
    }

    mutating func keeps() -> Bool {
        switch loss {
        case .nothing: return true
        case .everything: return false
        case .some:
            state ^= state << 13
            state ^= state >> 7
            state ^= state << 17
            return state & 1 == 0
        }
    }
}
