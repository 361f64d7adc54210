import Foundation
import GRDB
package import HeraldModel
package import HeraldTrust

/// Devices of the ledger.
extension TrustDatabase {
    package func add(_ device: EnrolledDevice, invitation: String?) async throws -> Bool {
        try await change { database in
            let sql = "SELECT 1 FROM device WHERE id = ?"
            guard try Int.fetchOne(database, sql: sql, arguments: [device.id.name]) == nil else { return false }
            if let invitation {
                let use = Invitation.Use(device: device.id, at: device.created)
                guard try TrustDatabase.use(invitation, use, database) else { return false }
            }
            try database.execute(
                sql: "INSERT INTO device (id, name, created, invitation, labels, kept) VALUES (?, ?, ?, ?, ?, ?)",
                arguments: [
                    device.id.name, device.name, device.created.milliseconds, device.invitation, device.labels.lines,
                    device.kept.certificate.map { Data($0) },
                ]
            )
            let number = database.lastInsertedRowID
            for (position, certificate) in device.certificates.enumerated() {
                try database.cachedStatement(sql: "INSERT INTO device_certificate VALUES (?, ?, ?, ?)")
                    .execute(arguments: [number, position, certificate.serial, certificate.expires.milliseconds])
            }
            return true
        }
    }

    package func renew(
        _ device: DeviceID,
        with certificate: EnrolledDevice.Certificate,
        kept: [UInt8]?,
        use: (invitation: String, Invitation.Use)?,
        limit: Int,
        now: WallTime
    ) async throws -> Bool {
        try await change { database in
            if let use, try TrustDatabase.usable(use.invitation, database) == nil { return false }
            let isAdded = try database.changes(
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
            guard isAdded else { return false }
            try database.execute(
                sql: """
                    UPDATE device SET kept = ?2, kept_revision = kept_revision + 1
                    WHERE id = ?1 AND (kept IS NOT NULL OR ?2 IS NOT NULL)
                    """,
                arguments: [device.name, kept.map { Data($0) }]
            )
            return try use.map { try TrustDatabase.use($0.invitation, $0.1, database) } ?? true
        }
    }

    package func devices(_ selection: DeviceSelection) async throws -> LedgerPage<EnrolledDevice> {
        try await read { database in
            let found = try TrustDatabase.identifiers(selection, database)
            guard let first = found.items.first, let last = found.items.last else {
                return LedgerPage(items: [], next: found.next)
            }
            // Without a condition they follow each other.
            let devices =
                selection.isAll
                ? try TrustTables.devices(database, where: "id BETWEEN ? AND ?", [first, last])
                : try found.items.flatMap { try TrustTables.devices(database, where: "id = ?", [$0]) }
            return LedgerPage(items: devices, next: found.next)
        }
    }

    private static func identifiers(_ selection: DeviceSelection, _ database: Database) throws -> LedgerPage<String> {
        var arguments: StatementArguments = [
            selection.after ?? "", selection.text ?? "", DeviceSelection.scan + 1, selection.unseenSince?.milliseconds,
            selection.isUnused, selection.lacking, selection.isUnrevoked,
        ]
        var labels = ""
        for (index, label) in selection.labels.enumerated() {
            // A line of its own, or the beginning of one.
            arguments += [label.value == nil ? "\n\(label)=" : "\n\(label)\n"]
            labels += " AND instr(char(10) || labels || char(10), ?\(index + 8))"
        }
        // SQLite ignores case in ASCII alone.
        let sql = """
            SELECT id, (?2 = '' OR instr(lower(id || char(10) || ifnull(name, '') || char(10) || labels), lower(?2)))
                AND (?4 IS NULL OR revoked IS NULL AND max(ifnull(time, created), ifnull(seen, created)) <= ?4)
                AND (NOT ?5 OR revoked IS NULL AND seen IS NULL) AND (NOT ?7 OR revoked IS NULL)
                AND (?6 IS NULL OR revoked IS NULL AND announcement < ?6 AND announcement > -?6)\(labels)
            FROM device LEFT JOIN device_sighting ON device_sighting.device = device.number
            WHERE id > ?1 ORDER BY id LIMIT ?3
            """
        let rows = try Row.fetchCursor(database.cachedStatement(sql: sql), arguments: arguments)
        var found: [String] = []
        var last: String?
        var looked = 0
        while let row = try rows.next() {
            guard found.count < selection.limit, looked < DeviceSelection.scan else {
                return LedgerPage(items: found, next: last)
            }
            let id = try CheckedRow.valid(String.fromDatabaseValue(row[0]))
            let isMatch = try CheckedRow.valid(Int64.fromDatabaseValue(row[1])) != 0
            looked += 1
            last = id
            guard isMatch else { continue }
            if let condition = selection.condition {
                guard let device = DeviceID(id), condition(device) else { continue }
            }
            found.append(id)
        }
        return LedgerPage(items: found, next: nil)
    }

    package func device(_ id: DeviceID) async throws -> EnrolledDevice? {
        try await read { try TrustTables.devices($0, where: "id = ?", [id.name]).first }
    }

    package func announcementCounts(_ version: Int64, now: WallTime) async throws -> AnnouncementCounts {
        try await read { database in
            let sql = """
                SELECT announcement, EXISTS (SELECT 1 FROM device_certificate WHERE device = number AND expires >= ?1),
                    count(*)
                FROM device WHERE revoked IS NULL GROUP BY 1, 2
                """
            var counts = AnnouncementCounts()
            try CheckedRow.forEach(database, sql: sql, [now.milliseconds]) { row in
                let state = AnnouncementState(try row.integer(0), complete: version)
                counts.add(try row.number(2), state, isExpired: try row.integer(1) == 0)
            }
            return counts
        }
    }

    package func tell(_ devices: [DeviceID], of version: Int64) async throws -> Int {
        try await change { database in
            let sql = "UPDATE device SET announcement = -?2 WHERE id = ?1 AND revoked IS NULL AND announcement <= 0"
            return try devices.count { try database.changes(sql, [$0.name, version]) }
        }
    }

    package func revokeDevice(_ id: DeviceID, at moment: WallTime) async throws -> Bool {
        try await change { database in
            try database.changes(
                "UPDATE device SET revoked = ? WHERE id = ? AND revoked IS NULL",
                [moment.milliseconds, id.name]
            )
        }
    }

    package func changeLabels(
        of id: DeviceID,
        _ change: @escaping @Sendable (_ labels: inout [String: String]) throws -> Void
    ) async throws -> Bool {
        try await self.change { database in
            guard let device = try TrustTables.devices(database, where: "id = ?", [id.name]).first else { return false }
            var labels = device.labels.all
            try change(&labels)
            return try database.changes(
                "UPDATE device SET labels = ?, labels_revision = labels_revision + 1 WHERE id = ?",
                [DeviceLabels.lines(labels), id.name]
            )
        }
    }

    package func note(_ sightings: [DeviceSighting]) async throws {
        guard !sightings.isEmpty else { return }
        try await change { database in
            let sql = """
                INSERT INTO device_sighting (device, time, address) SELECT number, ?2, ?3 FROM device WHERE id = ?1
                ON CONFLICT (device) DO UPDATE SET time = ?2, address = ?3
                """
            let announced = "UPDATE device SET announcement = ?2 WHERE id = ?1 AND announcement < ?2"
            let shared = """
                UPDATE device SET seen = ?2, kept = CASE WHEN seen IS NULL THEN NULL ELSE kept END,
                    kept_revision = kept_revision + (seen IS NULL AND kept IS NOT NULL)
                WHERE id = ?1 AND (seen IS NULL OR seen <= ?2 - ?3)
                """
            let age = DeviceSighting.sharedEvery.wholeMilliseconds
            for one in sightings {
                if let version = one.announcement {
                    _ = try database.changes(announced, [one.device.name, version])
                }
                try database.cachedStatement(sql: sql)
                    .execute(arguments: [one.device.name, one.at.milliseconds, one.address])
                try database.cachedStatement(sql: shared)
                    .execute(arguments: [one.device.name, one.at.milliseconds, age])
            }
        }
    }
}
