import Foundation
import GRDB
package import HeraldTrust

extension TrustDatabase: SharedLedger {
    package func beginSharing(anew: Bool) async throws {
        try await change { database in
            let sql = "SELECT value FROM setting WHERE name = 'shared'"
            let isShared = try Int64.fetchOne(database, sql: sql) == 1
            guard anew || !isShared else { return }
            try database.execute(
                sql: """
                    INSERT OR IGNORE INTO topic_revision SELECT topic, 1 FROM topic_claim;
                    UPDATE setting SET value = 1 WHERE name = 'shared';
                    \(SharedTables.allUnshared)
                    """
            )
        }
    }

    package func sharedPosition() async throws -> UInt64? {
        try await read { database in
            try Int64.fetchOne(database, sql: "SELECT value FROM setting WHERE name = 'position'")
                .map { UInt64(bitPattern: $0) }
        }
    }

    package func unshared(limit: Int) async throws -> [UnsharedFact] {
        try await read { database in
            // One statement where nothing has changed, which is most of the time.
            let sql = "SELECT number, kind, name FROM unshared ORDER BY number LIMIT ?"
            let notes = try CheckedRow.all(database, sql: sql, [max(0, limit)]) { row in
                let kind = try CheckedRow.valid(SharedKey.Kind(rawValue: try row.text(1)))
                return (number: try row.integer(0), kind: kind, name: try row.text(2))
            }
            // A change in between has a number of its own.
            return try notes.compactMap { note in
                try SharedTables.fact(note.kind, note.name, database).map {
                    UnsharedFact(number: note.number, fact: $0)
                }
            }
        }
    }

    package func wasShared(_ numbers: [Int64]) async throws {
        guard !numbers.isEmpty else { return }
        try await change { database in
            for number in numbers {
                try database.cachedStatement(sql: "DELETE FROM unshared WHERE number = ?").execute(arguments: [number])
            }
        }
    }

    package func take(_ facts: [SharedFact], upTo position: UInt64?) async throws -> TakenFacts {
        try await change { database in
            var taken = TakenFacts()
            // The log has these facts already.
            try database.execute(sql: "UPDATE setting SET value = 0 WHERE name = 'shared'")
            for fact in facts { try TrustDatabase.take(fact, database, &taken) }
            try database.execute(sql: "UPDATE setting SET value = 1 WHERE name = 'shared'")
            if let position {
                try database.execute(
                    sql: "INSERT OR REPLACE INTO setting VALUES ('position', ?)",
                    arguments: [Int64(bitPattern: position)]
                )
            }
            return taken
        }
    }

    private static func take(_ fact: SharedFact, _ database: Database, _ taken: inout TakenFacts) throws {
        let key = fact.key
        let own = try SharedTables.fact(key.kind, key.name, database)
        let merged = own.map { SharedFact.merge(log: fact, own: $0) } ?? fact
        if merged != own {
            try SharedTables.write(merged, database)
            taken.isChanged = true
            if merged.isRevoked { taken.isRevocation = true }
        }
        let isShared = merged == fact
        let sql =
            isShared
            ? "DELETE FROM unshared WHERE kind = ? AND name = ?"
            : "INSERT OR IGNORE INTO unshared (kind, name) VALUES (?, ?)"
        try database.cachedStatement(sql: sql).execute(arguments: [key.kind.rawValue, key.name])
    }

    package func sharedFiles() async throws -> [SharedFile.Name: SharedFileState] {
        try await read { database in
            var files: [SharedFile.Name: SharedFileState] = [:]
            try CheckedRow.forEach(database, sql: "SELECT name, revision, digest FROM shared_file") { row in
                let name = try CheckedRow.valid(SharedFile.Name(rawValue: try row.text(0)))
                files[name] = SharedFileState(revision: try row.number(1), digest: try row.bytes(2))
            }
            return files
        }
    }

    package func note(_ state: SharedFileState, of file: SharedFile.Name) async throws {
        try await change { database in
            try database.execute(
                sql: "INSERT OR REPLACE INTO shared_file VALUES (?, ?, ?)",
                arguments: [file.rawValue, Int64(bitPattern: state.revision), Data(state.digest)]
            )
        }
    }
}

extension SharedFact {
    /// Whether it is the revocation of a certificate or device.
    fileprivate var isRevoked: Bool {
        switch self {
        case .certificate(let certificate): certificate.revoked != nil
        case .device(let device): device.revoked != nil
        default: false
        }
    }
}
