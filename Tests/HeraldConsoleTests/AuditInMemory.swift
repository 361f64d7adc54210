import HeraldConsole
import Synchronization

/// An audit that a test reads.
final class AuditInMemory: ConsoleAudit {
    let entries = Mutex<[AuditEntry]>([])

    func write(_ entry: AuditEntry) {
        entries.withLock { held in
            var entry = entry
            entry.id = held.count + 1
            held.append(entry)
        }
    }

    func read(limit: Int, before: Int?) async throws -> [AuditEntry] {
        entries.withLock { Array($0.reversed().filter { entry in before.map { entry.id < $0 } ?? true }.prefix(limit)) }
    }
}
