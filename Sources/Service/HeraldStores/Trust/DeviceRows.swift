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
                guard try TrustDatabase.use(invitation, by: device, database) else { return false }
            }
            try database.execute(
                sql: "INSERT INTO device (id, name, created, invitation) VALUES (?, ?, ?, ?)",
                arguments: [device.id.name, device.name, device.created.milliseconds, device.invitation]
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

    package func devices(_ selection: DeviceSelection) async throws -> LedgerPage<EnrolledDevice> {
        try await read { database in
            let found = try TrustDatabase.identifiers(selection, database)
            guard let first = found.items.first, let last = found.items.last else {
                return LedgerPage(items: [], next: found.next)
            }
            // Without a condition they follow each other.
            let devices =
                selection.text == nil && selection.condition == nil
                ? try TrustTables.devices(database, where: "id BETWEEN ? AND ?", [first, last])
                : try found.items.flatMap { try TrustTables.devices(database, where: "id = ?", [$0]) }
            return LedgerPage(items: devices, next: found.next)
        }
    }

    private static func identifiers(_ selection: DeviceSelection, _ database: Database) throws -> LedgerPage<String> {
        // SQLite ignores case in ASCII alone.
        let sql = """
            SELECT id, ?2 = '' OR instr(lower(id || char(10) || ifnull(name, '') || char(10) || labels), lower(?2))
            FROM device WHERE id > ?1 ORDER BY id LIMIT ?3
            """
        let rows = try Row.fetchCursor(
            database.cachedStatement(sql: sql),
            arguments: [selection.after ?? "", selection.text ?? "", DeviceSelection.scan + 1]
        )
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

    package func revokeDevice(_ id: DeviceID, at moment: WallTime) async throws -> Bool {
        try await change { database in
            try database.changes(
                "UPDATE device SET revoked = ? WHERE id = ? AND revoked IS NULL",
                [moment.milliseconds, id.name]
            )
        }
    }

    package func setLabels(_ labels: [String: String], of id: DeviceID) async throws -> Bool {
        let lines = DeviceLabels.lines(labels)
        return try await change { database in
            try database.changes(
                "UPDATE device SET labels = ?, labels_revision = labels_revision + 1 WHERE id = ?",
                [lines, id.name]
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
            for one in sightings {
                try database.cachedStatement(sql: sql)
                    .execute(arguments: [one.device.name, one.at.milliseconds, one.address])
            }
        }
    }
}
