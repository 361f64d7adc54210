import Foundation
import GRDB
package import HeraldModel
package import HeraldTrust

extension TrustDatabase: TrustStore {
    // MARK: - Provider certificates

    package func add(_ certificate: Credential) async throws -> Bool {
        try await change { database in
            let arguments: StatementArguments = [
                certificate.id, certificate.serial, certificate.team,
                certificate.topics.map(\.name).joined(separator: " "),
                certificate.environments.map(\.rawValue).sorted().joined(separator: " "),
                certificate.created.milliseconds, certificate.expires?.milliseconds,
            ]
            let isAdded = try database.changes(
                """
                INSERT INTO certificate (id, serial, team, topics, environments, created, expires)
                SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7 WHERE NOT EXISTS (SELECT 1 FROM certificate WHERE id = ?1)
                """,
                arguments
            )
            if isAdded { try TrustTables.bumpClaims(database) }
            return isAdded
        }
    }

    package func certificates(after id: String?, limit: Int) async throws -> [Credential] {
        try await read { database in
            let sql = TrustTables.certificates + " WHERE id > ? ORDER BY id LIMIT ?"
            return try CheckedRow.all(database, sql: sql, [id ?? "", limit], TrustTables.certificate)
        }
    }

    package func certificate(_ id: String) async throws -> Credential? {
        try await read { database in
            try CheckedRow.all(database, sql: TrustTables.certificates + " WHERE id = ?", [id], TrustTables.certificate)
                .first
        }
    }

    package func revokeCertificate(_ id: String, at moment: WallTime) async throws -> Bool {
        try await change { database in
            let isRevoked = try database.changes(
                "UPDATE certificate SET revoked = ? WHERE id = ? AND revoked IS NULL",
                [moment.milliseconds, id]
            )
            if isRevoked { try TrustTables.bumpClaims(database) }
            return isRevoked
        }
    }

    // MARK: - Topic claims

    package func topicClaims(after version: Int64?) async throws -> TopicClaims? {
        try await read { database -> TopicClaims? in
            // The version before the rows: rows of a newer version are then read once more.
            let current = try TrustTables.claimsVersion(database)
            guard current != version else { return nil }
            let claims = try CheckedRow.all(database, sql: TrustTables.claims, [], TrustTables.claim)
            let topics = try CheckedRow.all(database, sql: TrustTables.certificateTopics, []) {
                try TrustTables.topics($0, 0)
            }
            let names = try CheckedRow.all(database, sql: TrustTables.certificateNames, []) { row in
                (try row.text(0), try row.text(1))
            }
            return TopicClaims(
                version: current,
                claims,
                certificateTopics: topics.flatMap(\.self),
                credentials: Dictionary(names) { _, later in later }
            )
        }
    }

    package func claim(_ claims: [TopicClaim], takesOver: Bool) async throws {
        try await change { database in
            var isChanged = false
            for claim in claims {
                let arguments: StatementArguments = [
                    claim.topic.name, claim.team, claim.origin.rawValue, claim.since.milliseconds, takesOver,
                    TopicClaims.maximumUses,
                ]
                if try database.changes(TrustTables.addClaim, arguments) { isChanged = true }
            }
            if isChanged { try TrustTables.bumpClaims(database) }
        }
    }

    package func release(_ topics: [Topic]) async throws -> Topic? {
        try await change { database in
            let owned = "SELECT 1 FROM topic_claim WHERE topic = ?"
            let unowned = try topics.first { try Int.fetchOne(database, sql: owned, arguments: [$0.name]) == nil }
            guard unowned == nil, !topics.isEmpty else { return unowned }
            for topic in topics { _ = try database.changes("DELETE FROM topic_claim WHERE topic = ?", [topic.name]) }
            try TrustTables.bumpClaims(database)
            return nil
        }
    }

    // MARK: - Revocations

    package func revokedSerials(of kind: PeerKind) async throws -> [String: WallTime] {
        try await read { database in
            var serials: [String: WallTime] = [:]
            try CheckedRow.forEach(database, sql: TrustTables.revokedSerials(of: kind)) { row in
                serials[try row.text(0)] = try row.time(1)
            }
            return serials
        }
    }

    package func revokedDevices(after count: Int) async throws -> Set<DeviceID>? {
        try await read { database in
            // No revocation is ever taken back.
            let sql = "FROM device WHERE revoked IS NOT NULL"
            guard try Int.fetchOne(database, sql: "SELECT count(*) \(sql)") != count else { return nil }
            var devices: Set<DeviceID> = []
            try CheckedRow.forEach(database, sql: "SELECT id \(sql)") { row in
                if let id = DeviceID(try row.text(0)) { devices.insert(id) }
            }
            return devices
        }
    }
}
