import GRDB
package import HeraldMailbox
import HeraldModel

extension SQLiteStore: ClockStore {
    package func clockRecord() async throws -> ClockGuard.Record? {
        try await readers.read { database in
            let milliseconds = try StoreSettings.value("clock_certain", database)
            guard milliseconds != 0 else { return nil }
            return ClockGuard.Record(
                certain: ClockGuard.Reading(
                    wall: WallTime(milliseconds: milliseconds),
                    uptime: .milliseconds(try StoreSettings.value("clock_uptime", database)),
                    boot: try StoreSettings.value("clock_boot", database)
                ),
                withheld: .milliseconds(try StoreSettings.value("clock_withheld", database)),
                deviation: .milliseconds(try StoreSettings.value("clock_deviation", database))
            )
        }
    }

    package func setClockRecord(_ record: ClockGuard.Record) async throws {
        try await change { database, _ in
            try StoreSettings.set("clock_certain", record.certain.wall.milliseconds, database)
            try StoreSettings.set("clock_uptime", record.certain.uptime.wholeMilliseconds, database)
            try StoreSettings.set("clock_boot", record.certain.boot, database)
            try StoreSettings.set("clock_withheld", record.withheld.wholeMilliseconds, database)
            try StoreSettings.set("clock_deviation", record.deviation.wholeMilliseconds, database)
        }
    }
}
