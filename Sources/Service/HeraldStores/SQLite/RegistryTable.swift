import GRDB
import HeraldMailbox
import HeraldModel

/// Reads and writes the tables of the registry.
///
/// GRDB caches the statements; none of them is on a notification's path.
enum RegistryTable {
    // MARK: - Numbers

    // Numbers are random. A new store, or one restored from a backup, must not reuse the number of another device or app,
    // because device tokens contain both.

    /// The number of a device; a new one for a new device.
    static func number(of device: DeviceID, _ database: Database) throws -> DeviceNumber {
        let selection = try database.cachedStatement(sql: "SELECT number FROM device WHERE id = ?")
        let number = try Int64.fetchOne(selection, arguments: [device.name])
        if let number { return DeviceNumber(UInt64(bitPattern: number)) }
        try database.cachedStatement(
            sql: "INSERT INTO device (number, id) VALUES (random() & 0x7FFFFFFFFFFFFFFF, ?)"
        ).execute(arguments: [device.name])
        return DeviceNumber(UInt64(bitPattern: database.lastInsertedRowID))
    }

    // MARK: - Registrations

    /// Reads all devices.
    ///
    /// The start waits for this, and there may be a million.
    static func loadDevices(_ database: Database, _ damage: DamagedRows) throws -> [(DeviceID, DeviceNumber)] {
        var devices: [(DeviceID, DeviceNumber)] = []
        try HotStatement(database, sql: "SELECT number, id FROM device").forEachRow { row in
            if let id = row.text(1).flatMap({ DeviceID($0) }) {
                devices.append((id, DeviceNumber(UInt64(bitPattern: row.integer(0)))))
            } else {
                damage.add("device")
            }
            return true
        }
        return devices
    }

    static func loadRegistrations(_ database: Database, _ damage: DamagedRows) throws -> [Registration] {
        var registrations: [Registration] = []
        try HotStatement(database, sql: "SELECT \(columns) FROM registration").forEachRow { row in
            if let valid = try damage.leaveOut("registration", { try registration(row) }) {
                registrations.append(valid)
            }
            return true
        }
        return registrations
    }

    /// Makes or confirms a registration.
    ///
    /// The generation of a damaged row is unknown. A random one replaces it, so that dead tokens stay dead.
    static func register(
        _ slot: Slot,
        at moment: WallTime,
        _ database: Database,
        _ damage: DamagedRows
    ) throws -> (registration: Registration, isAnew: Bool) {
        let found = try find(slot, database, damage)
        guard var registration = found.registration else {
            let floor = try generationFloor(database)
            let generation = found.isDamaged ? max(floor, .random(in: 1 << 16..<1 << 31)) : floor
            let new = Registration(slot: slot, generation: generation, isLive: true, registered: moment)
            try save(new, database)
            return (new, true)
        }
        guard !registration.isLive else { return (registration, false) }
        registration.generation = try next(after: registration.generation)
        registration.isLive = true
        registration.isEnabled = true
        registration.registered = moment
        try database.cachedStatement(sql: "DELETE FROM feedback WHERE device = ? AND app = ?")
            .execute(arguments: key(slot))
        try save(registration, database)
        return (registration, true)
    }

    /// - Returns: Whether the registration was live.
    static func unregister(
        _ slot: Slot,
        at moment: WallTime,
        _ database: Database,
        _ damage: DamagedRows
    ) throws -> Bool {
        guard var registration = try find(slot, database, damage).registration, registration.isLive else {
            return false
        }
        registration.isLive = false
        registration.ended = moment
        try save(registration, database)
        return true
    }

    /// Deletes a device's oldest ended registrations, and raises the generation floor above theirs.
    static func forgetEnded(
        _ device: DeviceNumber,
        keeping limit: Int,
        _ database: Database,
        _ damage: DamagedRows
    ) throws -> [Slot] {
        let ended = try damage.valid(
            of: "registration",
            database,
            sql: """
                SELECT app, generation FROM registration WHERE device = ? AND NOT is_live
                ORDER BY ended DESC, app DESC LIMIT -1 OFFSET ?
                """,
            [Int64(bitPattern: device.value), max(0, limit)]
        ) { row in
            EndedRegistration(
                slot: Slot(device: device, app: AppNumber(try row.number(0))),
                generation: try row.number(1)
            )
        }
        try forget(ended, database)
        return ended.map(\.slot)
    }

    /// The key and generation of an ended registration.
    struct EndedRegistration: Sendable {
        let slot: Slot
        let generation: UInt32
    }

    /// The ended registrations of an app; reads all registrations.
    static func ended(
        of app: AppNumber,
        _ database: Database,
        _ damage: DamagedRows
    ) throws -> [EndedRegistration] {
        var ended: [EndedRegistration] = []
        let sql = "SELECT \(columns) FROM registration WHERE app = \(app.value) AND NOT is_live"
        try HotStatement(database, sql: sql).forEachRow { row in
            if let valid = try damage.leaveOut("registration", { try registration(row) }) {
                ended.append(EndedRegistration(slot: valid.slot, generation: valid.generation))
            }
            return true
        }
        return ended
    }

    /// Deletes ended registrations, and raises the generation floor above theirs.
    static func forget(_ ended: [EndedRegistration], _ database: Database) throws {
        guard !ended.isEmpty else { return }
        var floor = try generationFloor(database)
        for registration in ended {
            floor = max(floor, try next(after: registration.generation))
            for table in ["registration", "feedback"] {
                try database.cachedStatement(sql: "DELETE FROM \(table) WHERE device = ? AND app = ?")
                    .execute(arguments: key(registration.slot))
            }
        }
        try database.cachedStatement(sql: "INSERT OR REPLACE INTO setting VALUES ('generation_floor', ?)")
            .execute(arguments: [Int64(floor)])
    }

    /// The first generation of a new registration: above those of all deleted ones.
    static func generationFloor(_ database: Database) throws -> UInt32 {
        let selection = try database.cachedStatement(sql: "SELECT value FROM setting WHERE name = 'generation_floor'")
        return try Int64.fetchOne(selection).map { try CheckedRow.valid(UInt32(exactly: $0)) } ?? 0
    }

    private static func next(after generation: UInt32) throws -> UInt32 {
        guard generation < .max else {
            throw StoreError(.cannotWrite, "an app can be removed from a device at most 2^32 times")
        }
        return generation + 1
    }

    static func setEnabled(_ enabled: Bool, for slot: Slot, _ database: Database) throws {
        try database.cachedStatement(
            sql: "UPDATE registration SET is_enabled = ? WHERE device = ? AND app = ? AND is_live"
        ).execute(arguments: [enabled] + key(slot))
    }

    private static let columns = "device, app, generation, is_live, registered, ended, is_enabled"

    private static func find(
        _ slot: Slot,
        _ database: Database,
        _ damage: DamagedRows
    ) throws -> (registration: Registration?, isDamaged: Bool) {
        let selection = try HotStatement(
            database,
            sql: "SELECT \(columns) FROM registration WHERE device = ? AND app = ?",
            isCached: true
        )
        selection.bind(Int64(bitPattern: slot.device.value), at: 1)
        selection.bind(Int64(slot.app.value), at: 2)
        var found: Registration?
        var isDamaged = false
        try selection.forEachRow { row in
            found = try damage.leaveOut("registration") { try registration(row) }
            isDamaged = found == nil
            return false
        }
        return (found, isDamaged)
    }

    static func save(_ registration: Registration, _ database: Database) throws {
        try database.cachedStatement(
            sql: "INSERT OR REPLACE INTO registration (\(columns)) VALUES (?, ?, ?, ?, ?, ?, ?)"
        ).execute(
            arguments: key(registration.slot) + [
                Int64(registration.generation), registration.isLive, registration.registered.milliseconds,
                registration.ended?.milliseconds, registration.isEnabled,
            ]
        )
    }

    /// Reads the columns of ``columns``.
    private static func registration(_ row: HotRow) throws -> Registration {
        Registration(
            slot: Slot(
                device: DeviceNumber(UInt64(bitPattern: try row.checkedInteger(0))),
                app: AppNumber(try CheckedRow.valid(UInt32(exactly: row.checkedInteger(1))))
            ),
            generation: try CheckedRow.valid(UInt32(exactly: row.checkedInteger(2))),
            isLive: try row.checkedInteger(3) != 0,
            registered: WallTime(milliseconds: try row.checkedInteger(4)),
            ended: try row.checkedOptionalInteger(5).map(WallTime.init(milliseconds:)),
            isEnabled: try row.checkedInteger(6) != 0
        )
    }

    // MARK: - Devices

    static func setSavingPower(_ saving: Bool, for device: DeviceNumber, _ database: Database) throws {
        try database.cachedStatement(sql: "UPDATE device SET is_saving_power = ? WHERE number = ?")
            .execute(arguments: [saving, Int64(bitPattern: device.value)])
    }

    static func setSession(_ text: String?, for device: DeviceNumber, _ database: Database) throws {
        try database.cachedStatement(sql: "UPDATE device SET session = ? WHERE number = ?")
            .execute(arguments: [text, Int64(bitPattern: device.value)])
    }

    static func deviceRecord(_ device: DeviceNumber, _ database: Database) throws -> DeviceRecord {
        let selection = try HotStatement(
            database,
            sql: "SELECT is_saving_power, session FROM device WHERE number = ?",
            isCached: true
        )
        selection.bind(Int64(bitPattern: device.value), at: 1)
        var record = DeviceRecord()
        try selection.forEachRow { row in
            record.isSavingPower = row.integer(0) != 0
            // Without a readable session, the device subscribes again.
            record.session = row.text(1).flatMap { SessionRecord(text: $0) }
            return false
        }
        return record
    }

    // MARK: - Feedback

    /// Adds a token of an ended registration, unless one of the same or a later generation is there.
    static func addFeedback(_ record: FeedbackRecord, _ database: Database) throws {
        try database.cachedStatement(
            sql: """
                INSERT INTO feedback (device, app, time, generation)
                SELECT device, app, ?3, ?4 FROM registration WHERE device = ?1 AND app = ?2 AND NOT is_live
                ON CONFLICT DO UPDATE SET time = excluded.time, generation = excluded.generation
                WHERE excluded.generation > generation
                """
        ).execute(arguments: key(record.slot) + [record.time.milliseconds, Int64(record.generation)])
    }

    static func feedback(
        for app: AppNumber,
        limit: Int,
        _ database: Database,
        _ damage: DamagedRows
    ) throws -> [FeedbackRecord] {
        try damage.valid(
            of: "feedback",
            database,
            sql: "SELECT device, generation, time FROM feedback WHERE app = ? ORDER BY time, device LIMIT ?",
            [Int64(app.value), max(0, limit)]
        ) { row in
            FeedbackRecord(
                slot: Slot(device: DeviceNumber(UInt64(bitPattern: try row.integer(0))), app: app),
                generation: try row.number(1),
                time: try row.time(2)
            )
        }
    }

    static func clearFeedback(_ records: [FeedbackRecord], _ database: Database) throws {
        let statement = try database.cachedStatement(
            sql: "DELETE FROM feedback WHERE app = ? AND time = ? AND device = ? AND generation = ?"
        )
        for record in records {
            try statement.execute(arguments: [
                Int64(record.slot.app.value), record.time.milliseconds, Int64(bitPattern: record.slot.device.value),
                Int64(record.generation),
            ])
        }
    }

    private static func key(_ slot: Slot) -> StatementArguments {
        [Int64(bitPattern: slot.device.value), Int64(slot.app.value)]
    }
}
