import Foundation
import GRDB
import HeraldModel
import Testing

@testable import HeraldRelay

/// Queues in an application's own database.
@Suite(.timeLimit(.minutes(10))) struct OtherTablesTests {
    @Test(arguments: Engine.all) func `tables of an application are left alone, and the hint names what works`(
        _ engine: Engine
    ) async throws {
        try await engine.withBare { store, address in
            try await store.run("CREATE TABLE devices (id integer, name text)")
            try await store.run("CREATE TABLE push_templates (id integer)")
            try await store.run("INSERT INTO devices VALUES (7, 'phone')")
            let error = try await #require(throws: RelayStoreError.self) { try await store.prepare() }
            #expect(
                error.code == .unusable
                    && error.message.hasPrefix("the table devices has other columns than the relay's")
            )
            let hint = "herald relay schema --table-prefix herald_"
            #expect(error.message.contains("`--table-prefix herald_`") && error.message.contains("`\(hint)`"))
            #expect(try await !store.hasQueue(), "nothing is created beside them")

            let tables = try TableNames(prefix: "herald_")
            #expect(tables.schemaCommand == hint)
            for statement in RelaySchema.statements(store.database.dialect, tables) { try await store.run(statement) }
            let prefixed = try RelayStore.patient(address, tables: tables)
            #expect(try await prefixed.prepare() == [])
            try await use(prefixed, tables)
            #expect(try await store.run("SELECT id, name FROM devices").first?.map(\.text) == ["7", "phone"])
            #expect(try await store.run("SELECT id FROM push_templates").isEmpty)
            await prefixed.close()
        }
    }

    @Test(arguments: [Engine.all[0], Engine.all[1]], ["devices_", "a_push_queue_", "push_outcomes_devices"])
    func `a prefix may contain names of the tables`(_ engine: Engine, _ prefix: String) async throws {
        let tables = try TableNames(prefix: prefix)
        try await engine.withBare(tables) { store, _ in
            #expect(try await store.prepare() == [])
            try await use(store, tables)
        }
    }

    /// Every kind of statement.
    private func use(_ store: RelayStore, _ tables: TableNames) async throws {
        var changes = store.changes { _ in }.makeAsyncIterator()
        await changes.next()
        var device = RelayDevice(token: Words.token, topic: "com.example.chat")
        (device.registered, device.userName) = (Words.now, "ann")
        try await store.register(device)
        #expect(try await store.tokens(of: "ann", topic: device.topic, limit: 9) == [Words.token])
        try await store.run("INSERT INTO \(tables.templates) (name, payload) VALUES ('hi', '{}')")
        #expect(try await store.template("hi") == ["": "{}"])
        let id = try await store.enqueue(
            NewPush([.deviceToken: .text(Words.token), .topic: .text(device.topic), .payload: .text(Words.payload)])
        )
        await changes.next()
        let row = try #require(try await store.claim().first)
        #expect(row.device?.isDead == false)
        try await store.extend([id], owner: "one", until: Words.now + .seconds(90))
        try await store.fanOut(id, to: [Words.token, Words.other], owner: "one")
        let parts = try await store.claim()
        for part in parts { _ = try await store.finish(part, .final(.sent, reason: nil)) }
        #expect(try await store.push(id)?.outcomes.map(\.status) == ["sent", "sent"])
        #expect(try await store.settle(after: 0).finished.isEmpty)
        let dead = DeadToken(token: Words.token, topic: device.topic, time: Words.now + .seconds(1), evidence: "410")
        #expect(try await store.markDead([dead], held: false) == 1)
        try await store.save(
            DeadTokenBreaker.Trip(app: "a.b (production)", deadTokens: 21, answers: 30, since: Words.now)
        )
        #expect(try await store.progress(at: Words.now).deadDevices == 1)
        #expect(try await store.revive(TokenSelection()) == Revival(tokens: 1, breakers: ["a.b (production)"]))
        try await store.run("UPDATE \(tables.queue) SET time_sent = NULL WHERE id = ?1", .int(id))
        #expect(try await store.claim().map(\.id) == [id])
        #expect(try await store.takeOver(at: Words.now) == 1)
        #expect(try await store.release(except: [], owner: "one") == 1)
        _ = try await store.finish(try #require(try await store.claim().first), .final(.failed, reason: "Because"))
        #expect(try await store.retry(RowSelection(statuses: [.failed])) == 1)
        _ = try await store.finish(try #require(try await store.claim().first), .final(.failed, reason: "Because"))
        #expect(try await store.deleteOld([.failed], endedBefore: Words.now - .seconds(60), after: .min).deleted == 0)
        #expect(try await store.purge(RowSelection(), isDryRun: false).count == 1)
    }

    @Test(arguments: [
        "1a_", "Herald_", "a-b", "a b", "a.", "ä", "a\"", "a;", "sqlite_x", String(repeating: "a", count: 33),
    ])
    func `a prefix that would need quotes is refused`(prefix: String) {
        let error = #expect(throws: RelayStoreError.self) { try TableNames(prefix: prefix) }
        #expect(error?.message.hasPrefix("`table-prefix` must have") == true)
    }

    @Test(arguments: [Engine.all[1], Engine.all[2]])
    func `a row is sent again whatever the search path of who asks for it`(_ engine: Engine) async throws {
        try await engine.with { store in
            let id = try await store.queue("[\"\(Words.token)\"]")
            _ = try await store.claim()
            try await store.fanOut(id, to: [Words.token], owner: "one")
            _ = try await store.finish(try #require(try await store.claim().first), .final(.sent, reason: nil))
            try await store.database.write { session in
                _ = try session.runOnce("SET LOCAL search_path = pg_catalog", [])
                _ = try session.runOnce("UPDATE public.push_queue SET time_sent = NULL WHERE id = \(id)", [])
            }
            #expect(try await store.claim().map(\.id) == [id])
        }
    }

    @Test func `times that are none are errors of their row alone`() async throws {
        try await Engine.all[1].with { store in
            for column in ["send_after", "give_up_at", "time_queued"] {
                for value in ["infinity", "-infinity", "294276-12-31", "4713-01-01 BC"] {
                    try await store.run(
                        "INSERT INTO push_queue (device_token, topic, payload, \(column)) VALUES ('ab', 'a.b', '{}', '\(value)')"
                    )
                }
            }
            let reader = RowReader(longestLife: .seconds(86_400))
            let reasons = try await store.claim(100).map { row -> String in
                guard case .final(_, let error) = reader.plan(row, at: Words.now) else { return "" }
                return error.reason.rawValue
            }
            #expect(reasons[..<2] == ["BadSendAfter", "BadSendAfter"])
            #expect(reasons[2..<4] == ["BadSendAfter", "BadSendAfter"])
            #expect(
                reasons[4..<8].allSatisfy { $0 == "BadGiveUpAt" } && reasons[8...].allSatisfy { $0 == "BadTimeQueued" }
            )
            #expect(try await store.progress(at: Words.now).rows == ["queued": 12])
            try await store.run("UPDATE push_queue SET status = 'sent', time_sent = 'infinity'")
            #expect(try await store.deleteOld([.sent], endedBefore: Words.now - .seconds(60), after: .min).deleted <= 4)
            // The end of a claim counts for rows without a time that can be read, and no year is shown as another.
            #expect(try await store.purge(RowSelection(before: Words.now), isDryRun: true).count == 0)
            let later = RowSelection(before: Words.now + .seconds(3600))
            #expect(try await store.purge(later, isDryRun: true).count == 12)
            let first = try #require(try await store.purge(later, isDryRun: false).queued).lowerBound
            #expect(first > Words.now - .seconds(86_400))
        }
    }

    @Test(
        arguments: [
            ("2026-11-21T05:00:00+02:00", "2026-11-21 04:00:00", true),
            ("2026-11-21T05:00:00Z", "2026-11-21 04:59:59.999", false),
            ("1795230000", "2026-11-21 02:59:59", false), ("2026-11-21 03:00:00", "1795230000", true),
            ("2026-11-21T05:00:00Z", "soon", nil), ("soon", "2026-11-21 05:00:00", nil), (nil, "soon", true),
            ("soon", nil, false),
        ] as [(String?, String?, Bool?)]
    )
    func `in SQLite a device is dead by its times, in any form, and never alive by one that cannot be read`(
        registered: String?,
        died: String?,
        isDead: Bool?
    ) async throws {
        try await Engine.all[0].with { store in
            try await store.run(
                """
                INSERT INTO devices (device_token, topic, user_name, registered_at, dead_at)
                VALUES (?1, 'com.example.chat', 'ann', ?2, ?3)
                """,
                .text(Words.token),
                .text(registered),
                .text(died)
            )
            try await store.queue()
            #expect(try await store.claim().first?.device?.isDead == isDead)
            #expect(try await store.tokens(of: "ann", topic: "com.example.chat", limit: 9).isEmpty == (isDead == true))
        }
    }

    @Test func `a SQLite file in another encoding is refused, and stays as it is`() async throws {
        try await Engine.all[0].withBare { store, address in
            guard case .sqlite(let path) = address else { return }
            let other = path + "-16"
            let queue = try DatabaseQueue(path: other)
            try await queue.writeWithoutTransaction {
                try $0.execute(sql: "PRAGMA encoding = 'UTF-16'; CREATE TABLE t (n)")
            }
            let error = #expect(throws: RelayStoreError.self) { try RelayStore.open(.sqlite(path: other)) }
            #expect(error?.code == .unusable && error?.message.hasSuffix("in UTF-16le: the relay needs UTF-8") == true)
            #expect(try await !store.hasQueue())
        }
    }

    @Test func `the files of a SQLite queue are the relay's alone`() async throws {
        try await Engine.all[0].withBare { store, address in
            guard case .sqlite(let path) = address else { return }
            func modes() throws -> [Int] {
                try ["", "-journal"].map { suffix in
                    let attributes = try FileManager.default.attributesOfItem(atPath: path + suffix)
                    return try #require(attributes[.posixPermissions] as? Int)
                }
            }
            #expect(try await store.prepare() == [])
            #expect(try modes() == [0o600, 0o600])
            // For programs of a group.
            try FileManager.default.setAttributes([.posixPermissions: 0o660], ofItemAtPath: path)
            #expect(try await store.prepare() == [])
            try FileManager.default.setAttributes([.posixPermissions: 0o644], ofItemAtPath: path + "-journal")
            let warning = try #require(try await store.prepare().first)
            #expect(warning.contains("every user") && warning.hasSuffix("run `chmod o= \(path)-journal`"))
        }
    }
}
