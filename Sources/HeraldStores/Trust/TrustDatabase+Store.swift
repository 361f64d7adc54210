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

    package func certificates() async throws -> [Credential] {
        try await read { database in
            try CheckedRow.all(
                database,
                sql: TrustTables.certificates + " ORDER BY number",
                [],
                TrustTables.certificate
            )
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

    package func release(_ topic: Topic) async throws -> Bool {
        try await change { database in
            let isReleased = try database.changes("DELETE FROM topic_claim WHERE topic = ?", [topic.name])
            if isReleased { try TrustTables.bumpClaims(database) }
            return isReleased
        }
    }

    // MARK: - Devices

    package func add(_ device: EnrolledDevice, invitation: String?) async throws -> Bool {
        try await change { database in
            if let invitation {
                // In a cluster its use may have come from the log before the device.
                let sql = """
                    SELECT 1 FROM invitation
                    WHERE id = ? AND (used IS NULL AND withdrawn IS NULL OR device = ?)
                    """
                guard try Int.fetchOne(database, sql: sql, arguments: [invitation, device.id.name]) != nil else {
                    return false
                }
            }
            let isAdded = try database.changes(
                """
                INSERT INTO device (id, name, created)
                SELECT ?1, ?2, ?3 WHERE NOT EXISTS (SELECT 1 FROM device WHERE id = ?1)
                """,
                [device.id.name, device.name, device.created.milliseconds]
            )
            guard isAdded else { return false }
            let number = database.lastInsertedRowID
            for (position, certificate) in device.certificates.enumerated() {
                try database.cachedStatement(sql: "INSERT INTO device_certificate VALUES (?, ?, ?, ?)")
                    .execute(arguments: [number, position, certificate.serial, certificate.expires.milliseconds])
            }
            guard let invitation else { return true }
            return try database.changes(
                "UPDATE invitation SET device = ?, used = ? WHERE id = ?",
                [device.id.name, device.created.milliseconds, invitation]
            )
        }
    }

    package func renew(
        _ device: DeviceID,
        with certificate: EnrolledDevice.Certificate,
        limit: Int,
        now: WallTime
    ) async throws -> Bool {
        try await change { database in
            try database.changes(
                """
                INSERT INTO device_certificate
                SELECT number, 1 + (SELECT max(position) FROM device_certificate WHERE device = number), ?2, ?3
                FROM device WHERE id = ?1 AND revoked IS NULL
                AND ?4 > (SELECT count(*) FROM device_certificate WHERE device = number AND expires >= ?5)
                """,
                [
                    device.name, certificate.serial, certificate.expires.milliseconds, limit, now.milliseconds,
                ]
            )
        }
    }

    package func devices() async throws -> [EnrolledDevice] {
        try await read { try TrustTables.devices($0) }
    }

    package func device(_ id: DeviceID) async throws -> EnrolledDevice? {
        try await read { try TrustTables.devices($0, where: "id = ?", [id.name]).first }
    }

    package func revokeDevice(_ id: DeviceID, at moment: WallTime) async throws -> Bool {
        try await change { database in
            try database.changes(
                "UPDATE device SET revoked = ? WHERE id = ? AND revoked IS NULL",
                [moment.milliseconds, id.name]
            )
        }
    }

    // MARK: - Invitations

    package func add(_ invitations: [Invitation], limit: Int, now: WallTime) async throws -> AddedInvitations {
        try await change { database in
            let sql = """
                SELECT count(*) FROM invitation WHERE used IS NULL AND withdrawn IS NULL AND expires > ?
                """
            let open = try Int.fetchOne(database, sql: sql, arguments: [now.milliseconds]) ?? 0
            guard open + invitations.count <= limit else { return .tooMany }
            let taken = try database.cachedStatement(sql: "SELECT 1 FROM invitation WHERE id = ?")
            let ids = Set(invitations.map(\.id))
            guard ids.count == invitations.count,
                try ids.allSatisfy({ try Int.fetchOne(taken, arguments: [$0]) == nil })
            else { return .identifierTaken }
            for invitation in invitations {
                try database.cachedStatement(
                    sql: """
                        INSERT INTO invitation (id, name, lookup, digest, created, expires) VALUES (?, ?, ?, ?, ?, ?)
                        """
                ).execute(arguments: [
                    invitation.id, invitation.name, Invitation.lookupKey(invitation.digest), Data(invitation.digest),
                    invitation.created.milliseconds, invitation.expires.milliseconds,
                ])
            }
            return .added
        }
    }

    package func invitations() async throws -> [Invitation] {
        try await read { database in
            try CheckedRow.all(database, sql: TrustTables.invitations + " ORDER BY number", [], TrustTables.invitation)
        }
    }

    package func invitation(_ id: String) async throws -> Invitation? {
        try await read { database in
            try CheckedRow.all(database, sql: TrustTables.invitations + " WHERE id = ?", [id], TrustTables.invitation)
                .first
        }
    }

    package func invitations(lookupKey: Int64) async throws -> [Invitation] {
        try await read { database in
            let sql = TrustTables.invitations + " WHERE lookup = ?"
            return try CheckedRow.all(database, sql: sql, [lookupKey], TrustTables.invitation)
        }
    }

    package func withdrawInvitation(_ id: String, at moment: WallTime) async throws -> Bool {
        try await change { database in
            try database.changes(
                "UPDATE invitation SET withdrawn = ? WHERE id = ? AND used IS NULL AND withdrawn IS NULL",
                [moment.milliseconds, id]
            )
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
}

extension Database {
    /// Runs a statement that changes at most one row.
    /// - Returns: Whether it changed a row.
    fileprivate func changes(_ sql: String, _ arguments: StatementArguments) throws -> Bool {
        try cachedStatement(sql: sql).execute(arguments: arguments)
        return changesCount > 0
    }
}
