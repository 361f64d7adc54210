import Foundation
import GRDB
package import HeraldMailbox
package import HeraldModel
import Logging

/// Fills a copy of a store with what a cluster keeps, in place of what is there; the journal stays.
///
/// A loss of power may destroy the copy: who makes it syncs it at the end.
package final class StoreFiller: Sendable {
    private let path: String
    /// Notifications, of which a later one may replace an earlier one, until all are there.
    private let waiting: String
    private let queue: DatabaseQueue

    /// - Parameter path: The copy, which nothing else uses.
    /// - Throws: ``StoreError``.
    package init(_ path: String) throws {
        self.path = path
        waiting = path + "-waiting"
        do {
            queue = try Self.open(path)
            try queue.writeWithoutTransaction { [waiting] database in
                try database.execute(sql: "PRAGMA synchronous = OFF; PRAGMA journal_mode = MEMORY")
                try database.execute(sql: "ATTACH DATABASE ? AS scratch", arguments: [waiting])
                try database.execute(
                    sql: """
                        PRAGMA scratch.journal_mode = OFF;
                        PRAGMA scratch.synchronous = OFF;
                        CREATE TABLE scratch.waiting (
                            device INTEGER NOT NULL,
                            app INTEGER NOT NULL,
                            generation INTEGER NOT NULL,
                            sequence INTEGER NOT NULL,
                            header BLOB NOT NULL,
                            body BLOB NOT NULL,
                            PRIMARY KEY (device, app, generation)
                        ) STRICT, WITHOUT ROWID;
                        """
                )
                try Self.empty(database)
            }
        } catch {
            throw Self.failure(error, path)
        }
    }

    /// Removes everything but the journal from a store that nothing else uses.
    /// - Throws: ``StoreError``.
    package static func empty(_ path: String) throws {
        do {
            let queue = try open(path)
            try queue.write { try empty($0) }
            try queue.close()
        } catch {
            throw failure(error, path)
        }
    }

    /// Takes entries over, in their order.
    /// - Throws: ``StoreError``.
    package func add(_ entries: [StoreEntry]) throws {
        do {
            try queue.write { database in
                for entry in entries { try Self.add(entry, database) }
            }
        } catch {
            throw Self.failure(error, path)
        }
    }

    /// Leaves out what nothing refers to or what has expired, and closes the copy.
    /// - Throws: ``StoreError``.
    package func finish(at moment: WallTime) throws {
        do {
            try queue.write { database in
                try database.execute(sql: Self.tidying)
                try Self.writeNotifications(at: moment, database)
            }
            try queue.writeWithoutTransaction { try $0.execute(sql: "DETACH DATABASE scratch") }
            try queue.close()
            try FileManager.default.removeItem(atPath: waiting)
        } catch {
            throw Self.failure(error, path)
        }
    }

    // MARK: - Entries

    /// The copy has only what was just written.
    private static let noDamage = DamagedRows(logger: Logger(label: "herald.backup") { _ in SwiftLogNoOpLogHandler() })

    private static func add(_ entry: StoreEntry, _ database: Database) throws {
        switch entry {
        case .app(let app): try add(app, database)
        case .appForgotten(let app):
            try database.cachedStatement(sql: "DELETE FROM app WHERE topic = ? AND environment = ?")
                .execute(arguments: [app.topic.name, app.environment.rawValue])
        case .device(let id, let number, let record):
            try database.cachedStatement(
                sql: "INSERT OR REPLACE INTO device (number, id, is_saving_power, session) VALUES (?, ?, ?, ?)"
            ).execute(arguments: [
                Int64(bitPattern: number.value), id.name, record.isSavingPower,
                record.session?.text,
            ])
        case .registrations(let device, let all, let feedback, let floor):
            try replaceRegistrations(of: device, all, feedback, database)
            try raiseGenerationFloor(to: floor, database)
        case .channel(let channel):
            _ = try ChannelTable.delete(channel.id, database, noDamage)
            try ChannelTable.create(channel, database)
        case .channelDeleted(let id): _ = try ChannelTable.delete(id, database, noDamage)
        case .broadcast(let broadcast):
            guard let end = broadcast.storedUntil else { return }
            _ = try ChannelTable.store(broadcast, until: end, database, noDamage)
        case .notification(let stored): try add(stored, database)
        case .notificationEnded(let slot):
            try database.cachedStatement(
                sql: "DELETE FROM scratch.waiting WHERE device = ? AND app = ? AND generation = ?"
            ).execute(arguments: [
                Int64(bitPattern: slot.slot.device.value), Int64(slot.slot.app.value), Int64(slot.generation),
            ])
        }
    }

    private static func add(_ app: AppRecord, _ database: Database) throws {
        var arguments: StatementArguments = [
            Int64(app.number.value), app.app.topic.name, app.app.environment.rawValue,
        ]
        switch app.origin {
        case .device(let device): arguments += [Int64(bitPattern: device.value), nil]
        case .team(let team): arguments += [nil, team]
        case nil: arguments += [nil, nil]
        }
        try database.cachedStatement(
            sql: """
                INSERT OR REPLACE INTO app (number, topic, environment, origin_device, origin_team, created)
                VALUES (?, ?, ?, ?, ?, ?)
                """
        ).execute(arguments: arguments + [app.created.milliseconds])
    }

    private static func replaceRegistrations(
        of device: DeviceNumber,
        _ registrations: [Registration],
        _ feedback: [FeedbackRecord],
        _ database: Database
    ) throws {
        for table in ["registration", "feedback"] {
            try database.cachedStatement(sql: "DELETE FROM \(table) WHERE device = ?")
                .execute(arguments: [Int64(bitPattern: device.value)])
        }
        for registration in registrations { try RegistryTable.save(registration, database) }
        for record in feedback { try RegistryTable.addFeedback(record, database) }
    }

    private static func raiseGenerationFloor(to floor: UInt32, _ database: Database) throws {
        guard floor > 0, try StoreSettings.value("generation_floor", database) < Int64(floor) else { return }
        try StoreSettings.set("generation_floor", Int64(floor), database)
    }

    private static func add(_ stored: StoredNotification, _ database: Database) throws {
        let notification = stored.notification
        var words: [UInt64] = []
        NotificationHeader(notification, sequence: stored.sequence).append(to: &words)
        let body = Array((notification.collapseID?.text ?? "").utf8) + notification.payload
        try database.cachedStatement(sql: "INSERT OR REPLACE INTO scratch.waiting VALUES (?, ?, ?, ?, ?, ?)")
            .execute(arguments: [
                Int64(bitPattern: notification.slot.device.value), Int64(notification.slot.app.value),
                Int64(stored.generation), Int64(clamping: stored.sequence), words.withUnsafeBytes { Data($0) },
                Data(body),
            ])
    }

    // MARK: - The end

    /// Positions of written notifications that are kept; nothing asks for them.
    private static let positionLimit = 10_000

    /// Removes what was made while the streams were read one after the other.
    private static let tidying = """
        DELETE FROM registration
        WHERE app NOT IN (SELECT number FROM app) OR device NOT IN (SELECT number FROM device);
        DELETE FROM feedback WHERE NOT EXISTS (
            SELECT 1 FROM registration
            WHERE registration.device = feedback.device AND registration.app = feedback.app AND NOT is_live
        );
        DELETE FROM channel WHERE app NOT IN (SELECT number FROM app);
        DELETE FROM broadcast WHERE channel NOT IN (SELECT number FROM channel);
        """

    private static func writeNotifications(at moment: WallTime, _ database: Database) throws {
        var table = try SegmentTable(database)
        table.begin()
        var newest: UInt64 = 0
        let selection = try HotStatement(
            database,
            sql: """
                SELECT waiting.header, waiting.body FROM scratch.waiting JOIN registration
                ON registration.device = waiting.device AND registration.app = waiting.app
                AND registration.generation = waiting.generation
                WHERE is_live AND is_enabled ORDER BY waiting.sequence
                """
        )
        try selection.forEachRow { row in
            let header = NotificationHeader(row.bytes(0), at: 0)
            guard let notification = header.notification(row.bytes(1)) else { throw SegmentReader.invalidRow }
            guard header.storedUntil > moment.milliseconds else { return true }
            try table.append(notification, sequence: header.sequence)
            newest = header.sequence
            if table.positions.count >= positionLimit {
                try table.flush()
                table.begin()
            }
            return true
        }
        try table.flush()
        let ceiling = max(try StoreSettings.value("sequence_ceiling", database), Int64(clamping: newest) + 1)
        try StoreSettings.set("sequence_ceiling", ceiling, database)
    }

    // MARK: - The database

    private static func empty(_ database: Database) throws {
        for table in ["segment", "tombstone", "device", "app", "registration", "feedback", "channel", "broadcast"] {
            try database.execute(sql: "DELETE FROM \(table)")
        }
        try database.execute(sql: "DELETE FROM setting WHERE name = 'generation_floor'")
    }

    private static func open(_ path: String) throws -> DatabaseQueue {
        var settings = Configuration()
        settings.label = "herald-filler"
        settings.foreignKeysEnabled = false
        settings.prepareDatabase { database in
            try database.execute(sql: "PRAGMA mmap_size = 0; PRAGMA wal_autocheckpoint = 0")
        }
        return try DatabaseQueue(path: path, configuration: settings)
    }

    private static func failure(_ error: any Error, _ path: String) -> StoreError {
        guard let error = error as? DatabaseError else {
            return error as? StoreError ?? StoreError(.cannotWrite, "cannot write \(path): \(error)")
        }
        guard error.resultCode != .SQLITE_FULL else {
            return StoreError(.cannotWrite, "cannot write \(path): the disk is full")
        }
        return StoreError(.cannotWrite, "cannot write \(path): \(error.message ?? "no reason given")")
    }
}
