import GRDB
import HeraldMailbox
import HeraldModel

/// Reads and writes the table `app`.
///
/// Numbers are random: a store restored from a backup must not give the number of another app, because device tokens contain it.
enum AppTable {
    private static let columns = "number, topic, environment, origin_device, origin_team, created"

    /// The number of an app; a new app gets a random one.
    static func number(
        of app: App,
        for origin: AppOrigin?,
        at moment: WallTime,
        _ database: Database
    ) throws -> AppNumber {
        let selection = try database.cachedStatement(sql: "SELECT number FROM app WHERE topic = ? AND environment = ?")
        let name: StatementArguments = [app.topic.name, app.environment.rawValue]
        if let number = try Int64.fetchOne(selection, arguments: name) { return try appNumber(number) }
        let (device, team): (Int64?, String?) =
            switch origin {
            case .device(let device): (Int64(bitPattern: device.value), nil)
            case .team(let team): (nil, team)
            case nil: (nil, nil)
            }
        let insertion = try database.cachedStatement(
            sql: """
                INSERT OR IGNORE INTO app (number, topic, environment, origin_device, origin_team, created)
                VALUES (?, ?, ?, ?, ?, ?)
                """
        )
        while true {
            let number = UInt32.random(in: 1 ... .max)
            try insertion.execute(arguments: [Int64(number)] + name + [device, team, moment.milliseconds])
            // Another app may have the number.
            if database.changesCount > 0 { return AppNumber(number) }
        }
    }

    private static func appNumber(_ number: Int64) throws -> AppNumber {
        // Not SQLITE_CORRUPT, which would end the process at each use of the app.
        guard let number = UInt32(exactly: number) else {
            throw StoreError(.cannotWrite, "the row of an app is damaged: restore the store from a backup")
        }
        return AppNumber(number)
    }

    static func load(
        _ database: Database,
        _ damage: DamagedRows,
        only app: AppNumber? = nil
    ) throws -> [AppRecord] {
        var records: [AppRecord] = []
        let filter = app.map { " WHERE number = \($0.value)" } ?? ""
        let sql = "SELECT \(columns) FROM app\(filter) ORDER BY topic, environment"
        try HotStatement(database, sql: sql).forEachRow { row in
            if let valid = try damage.leaveOut("app", { try record(row) }) { records.append(valid) }
            return true
        }
        return records
    }

    private static func record(_ row: HotRow) throws -> AppRecord {
        let number = try CheckedRow.valid(UInt32(exactly: row.integer(0)))
        let topic = try CheckedRow.valid(row.text(1).flatMap { Topic($0) })
        let environment = try CheckedRow.valid(row.text(2).flatMap { PushEnvironment(rawValue: $0) })
        let device = try row.checkedOptionalInteger(3).map { AppOrigin.device(DeviceNumber(UInt64(bitPattern: $0))) }
        return AppRecord(
            app: App(topic: topic, environment: environment),
            number: AppNumber(number),
            origin: device ?? row.text(4).map { .team($0) },
            created: WallTime(milliseconds: try row.checkedInteger(5))
        )
    }

    /// Counts the registrations and channels of an app, or of all; reads all registrations.
    static func usages(_ app: AppNumber?, _ database: Database, _ damage: DamagedRows) throws -> [AppUsage] {
        let filter = app.map { " WHERE app = \($0.value)" } ?? ""
        func count(_ number: String, _ table: String) throws -> [Int64: Int] {
            var counts: [Int64: Int] = [:]
            let sql = "SELECT app, \(number) FROM \(table)\(filter) GROUP BY app"
            try HotStatement(database, sql: sql).forEachRow { row in
                counts[row.integer(0)] = Int(row.integer(1))
                return true
            }
            return counts
        }
        let (devices, channels) = (try count("sum(is_live)", "registration"), try count("count(*)", "channel"))
        return try load(database, damage, only: app).map { record in
            let number = Int64(record.number.value)
            return AppUsage(record: record, devices: devices[number] ?? 0, channels: channels[number] ?? 0)
        }
    }

    static func delete(_ app: AppNumber, _ database: Database) throws {
        try database.execute(sql: "DELETE FROM app WHERE number = ?", arguments: [Int64(app.value)])
    }
}
