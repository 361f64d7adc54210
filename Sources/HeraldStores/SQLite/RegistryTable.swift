import Foundation
import GRDB
import HeraldMailbox
import HeraldModel

/// The tables of the registry.
///
/// Statements are cached by GRDB; none of this is on the path of a notification.
enum RegistryTable {
    // Numbers.

    /// Numbers of devices are drawn at random: a store that begins anew, or goes back to a copy, must not give a device
    /// the number that another had, for it would give it that one's tokens.
    static func number(of device: DeviceID, _ database: Database) throws -> DeviceNumber {
        let number = try number(
            database,
            select: "SELECT number FROM device WHERE id = ?",
            insert: "INSERT INTO device (number, id) VALUES (random() & 0x7FFFFFFFFFFFFFFF, ?)",
            [device.name]
        )
        return DeviceNumber(UInt64(bitPattern: number))
    }

    static func number(of app: App, _ database: Database) throws -> AppNumber {
        let number = try number(
            database,
            select: "SELECT number FROM app WHERE topic = ? AND environment = ?",
            insert: "INSERT INTO app (topic, environment) VALUES (?, ?)",
            [app.topic.name, app.environment.rawValue]
        )
        guard let number = UInt32(exactly: number) else {
            throw StoreError(.cannotWrite, "the store has numbers for 2^32 apps only")
        }
        return AppNumber(number)
    }

    private static func number(
        _ database: Database,
        select: String,
        insert: String,
        _ arguments: StatementArguments
    ) throws -> Int64 {
        let selection = try database.cachedStatement(sql: select)
        if let number = try Int64.fetchOne(selection, arguments: arguments) { return number }
        try database.cachedStatement(sql: insert).execute(arguments: arguments)
        return database.lastInsertedRowID
    }

    // Registrations.

    /// Reads all devices and apps: the start waits for this, and there may be a million.
    static func loadDevices(_ database: Database) throws -> ([(DeviceID, DeviceNumber)], [(App, AppNumber)]) {
        var devices: [(DeviceID, DeviceNumber)] = []
        var apps: [(App, AppNumber)] = []
        try HotStatement(database, sql: "SELECT number, id FROM device").forEachRow { row in
            let id = try read(row.text(1).flatMap { DeviceID($0) })
            devices.append((id, DeviceNumber(UInt64(bitPattern: row.integer(0)))))
            return true
        }
        try HotStatement(database, sql: "SELECT number, topic, environment FROM app").forEachRow { row in
            let topic = try read(row.text(1).flatMap { Topic($0) })
            let environment = try read(row.text(2).flatMap { PushEnvironment(rawValue: $0) })
            let number = try read(UInt32(exactly: row.integer(0)))
            apps.append((App(topic: topic, environment: environment), AppNumber(number)))
            return true
        }
        return (devices, apps)
    }

    /// Reads all registrations.
    static func loadRegistrations(_ database: Database) throws -> [Registration] {
        var registrations: [Registration] = []
        try HotStatement(database, sql: "SELECT \(columns) FROM registration").forEachRow { row in
            registrations.append(try registration(row))
            return true
        }
        return registrations
    }

    static func register(_ slot: Slot, at moment: WallTime, _ database: Database) throws -> Registration {
        guard var registration = try find(slot, database) else {
            let generation = try generationFloor(database)
            let new = Registration(slot: slot, generation: generation, isLive: true, registered: moment)
            try save(new, database)
            return new
        }
        if !registration.isLive {
            registration.generation = try next(after: registration.generation)
            registration.isLive = true
            registration.isEnabled = true
            try database.cachedStatement(sql: "DELETE FROM feedback WHERE device = ? AND app = ?")
                .execute(arguments: key(slot))
        }
        registration.registered = moment
        try save(registration, database)
        return registration
    }

    /// - Returns: Whether the registration was live.
    static func unregister(_ slot: Slot, at moment: WallTime, _ database: Database) throws -> Bool {
        guard var registration = try find(slot, database), registration.isLive else { return false }
        registration.isLive = false
        registration.ended = moment
        try save(registration, database)
        try database.cachedStatement(
            sql: "INSERT OR REPLACE INTO feedback (app, time, device, generation) VALUES (?, ?, ?, ?)"
        ).execute(arguments: [
            Int64(slot.app.value), moment.milliseconds, Int64(bitPattern: slot.device.value),
            Int64(registration.generation),
        ])
        return true
    }

    /// Forgets a device's oldest ended registrations; their generations are left behind for ever.
    static func forgetEnded(_ device: DeviceNumber, keeping limit: Int, _ database: Database) throws -> [Slot] {
        let selection = try database.cachedStatement(
            sql: """
                SELECT app, generation FROM registration WHERE device = ? AND NOT is_live
                ORDER BY ended DESC, app DESC LIMIT -1 OFFSET ?
                """
        )
        let arguments: StatementArguments = [Int64(bitPattern: device.value), max(0, limit)]
        var floor = try generationFloor(database)
        var forgotten: [Slot] = []
        for row in try Row.fetchAll(selection, arguments: arguments) {
            let slot = Slot(device: device, app: AppNumber(try read(UInt32(exactly: row["app"] as Int64))))
            floor = max(floor, try next(after: try read(UInt32(exactly: row["generation"] as Int64))))
            for table in ["registration", "feedback"] {
                try database.cachedStatement(sql: "DELETE FROM \(table) WHERE device = ? AND app = ?")
                    .execute(arguments: key(slot))
            }
            forgotten.append(slot)
        }
        guard !forgotten.isEmpty else { return [] }
        try database.cachedStatement(sql: "INSERT OR REPLACE INTO setting VALUES ('generation_floor', ?)")
            .execute(arguments: [Int64(floor)])
        return forgotten
    }

    /// The generation with which a registration begins of which nothing is known: above those of all that were forgotten.
    private static func generationFloor(_ database: Database) throws -> UInt32 {
        let selection = try database.cachedStatement(sql: "SELECT value FROM setting WHERE name = 'generation_floor'")
        return try Int64.fetchOne(selection).map { try read(UInt32(exactly: $0)) } ?? 0
    }

    private static func next(after generation: UInt32) throws -> UInt32 {
        guard generation < .max else {
            throw StoreError(.cannotWrite, "the store counts 2^32 removals of an app from a device only")
        }
        return generation + 1
    }

    static func setEnabled(_ enabled: Bool, for slot: Slot, _ database: Database) throws {
        try database.cachedStatement(
            sql: "UPDATE registration SET is_enabled = ? WHERE device = ? AND app = ? AND is_live"
        ).execute(arguments: [enabled] + key(slot))
    }

    private static let columns = "device, app, generation, is_live, registered, ended, is_enabled"

    private static func find(_ slot: Slot, _ database: Database) throws -> Registration? {
        let selection = try HotStatement(
            database,
            sql: "SELECT \(columns) FROM registration WHERE device = ? AND app = ?",
            isCached: true
        )
        selection.bind(Int64(bitPattern: slot.device.value), at: 1)
        selection.bind(Int64(slot.app.value), at: 2)
        var found: Registration?
        try selection.forEachRow { row in
            found = try registration(row)
            return false
        }
        return found
    }

    private static func save(_ registration: Registration, _ database: Database) throws {
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
                device: DeviceNumber(UInt64(bitPattern: row.integer(0))),
                app: AppNumber(try read(UInt32(exactly: row.integer(1))))
            ),
            generation: try read(UInt32(exactly: row.integer(2))),
            isLive: row.integer(3) != 0,
            registered: WallTime(milliseconds: row.integer(4)),
            ended: row.optionalInteger(5).map(WallTime.init(milliseconds:)),
            isEnabled: row.integer(6) != 0
        )
    }

    // Devices.

    static func setSavingPower(_ saving: Bool, for device: DeviceNumber, _ database: Database) throws {
        try database.cachedStatement(sql: "UPDATE device SET is_saving_power = ? WHERE number = ?")
            .execute(arguments: [saving, Int64(bitPattern: device.value)])
    }

    static func text(of session: SessionRecord?) throws -> String? {
        guard let session else { return nil }
        if let plain = session.plainText { return plain }
        let encoder = JSONEncoder()
        encoder.outputFormatting = .sortedKeys
        return String(decoding: try encoder.encode(session), as: UTF8.self)
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
            // A session that cannot be read is no session: the device subscribes anew.
            record.session = row.text(1).flatMap { text in
                SessionRecord(plainText: text)
                    ?? (try? JSONDecoder().decode(SessionRecord.self, from: Data(text.utf8)))
            }
            return false
        }
        return record
    }

    // Feedback.

    static func feedback(for app: AppNumber, limit: Int, _ database: Database) throws -> [FeedbackRecord] {
        let statement = try database.cachedStatement(
            sql: "SELECT device, generation, time FROM feedback WHERE app = ? ORDER BY time, device LIMIT ?"
        )
        return try Row.fetchAll(statement, arguments: [Int64(app.value), max(0, limit)]).map { row in
            FeedbackRecord(
                slot: Slot(device: DeviceNumber(UInt64(bitPattern: row["device"])), app: app),
                generation: try read(UInt32(exactly: row["generation"] as Int64)),
                time: WallTime(milliseconds: row["time"])
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

    /// What was written was well-formed; if it no longer is, the file is damaged.
    private static func read<Value>(_ value: Value?) throws -> Value {
        guard let value else {
            throw DatabaseError(resultCode: .SQLITE_CORRUPT, message: "a row of the registry makes no sense")
        }
        return value
    }
}
