import Foundation
import GRDB
package import HeraldModel
package import HeraldTrust

/// Invitations of the ledger.
extension TrustDatabase {
    package func add(_ invitations: [Invitation], limit: Int, now: WallTime) async throws -> AddedInvitations {
        try await change { database in
            let sql = """
                SELECT count(*) FROM invitation WHERE taken < uses AND withdrawn IS NULL AND expires > ?
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
                        INSERT INTO invitation (id, name, lookup, digest, created, expires, uses, device, labels)
                        VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
                        """
                ).execute(arguments: [
                    invitation.id, invitation.name, Invitation.lookupKey(invitation.digest), Data(invitation.digest),
                    invitation.created.milliseconds, invitation.expires.milliseconds, invitation.uses,
                    invitation.device?.name, DeviceLabels.lines(invitation.labels),
                ])
            }
            return .added
        }
    }

    package func invitations(after id: String?, limit: Int) async throws -> [Invitation] {
        try await read { database in
            let sql = TrustTables.invitations + " WHERE id > ? ORDER BY id LIMIT ?"
            return try CheckedRow.all(database, sql: sql, [id ?? "", limit], TrustTables.invitation)
        }
    }

    package func invitation(_ id: String) async throws -> Invitation? {
        try await read { try TrustDatabase.invitation(id, $0) }
    }

    private static func invitation(_ id: String, _ database: Database) throws -> Invitation? {
        let sql = TrustTables.invitations + " WHERE id = ?"
        return try CheckedRow.all(database, sql: sql, [id], TrustTables.invitation).first
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
                """
                UPDATE invitation SET withdrawn = ?
                WHERE id = ? AND taken < uses + \(TrustTables.returned) AND withdrawn IS NULL
                """,
                [moment.milliseconds, id]
            )
        }
    }

    /// An invitation; nil if it is unknown, used up or withdrawn.
    static func usable(_ id: String, _ database: Database) throws -> Invitation? {
        guard let invitation = try invitation(id, database), !invitation.isUsedUp, invitation.withdrawn == nil
        else { return nil }
        return invitation
    }

    /// Counts a use of an invitation, within the transaction that adds the device or certificate.
    /// - Returns: false if it is not usable.
    static func use(_ id: String, _ use: Invitation.Use, _ database: Database) throws -> Bool {
        guard var invitation = try usable(id, database) else { return false }
        invitation.take(use)
        return try database.changes(
            "UPDATE invitation SET taken = ?, recent = ? WHERE id = ?",
            [
                invitation.taken,
                TrustTables.recent(invitation.recent.lazy.map { ($0.device.name, $0.at.milliseconds) }), id,
            ]
        )
    }
}
