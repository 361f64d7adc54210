import HeraldModel
import Testing

@testable import HeraldRelay

/// Settings of server, database, role and of other clients of a pooler.
@Suite(.timeLimit(.minutes(10))) struct PostgresSettingsTests {
    private static let settings = [
        "DateStyle = 'SQL, DMY'", "DateStyle = 'German'", "TimeZone = 'Pacific/Apia'", "IntervalStyle = 'sql_standard'",
        "extra_float_digits = -15", "bytea_output = 'escape'", "xmlbinary = 'hex'", "standard_conforming_strings = off",
        "client_encoding = 'LATIN1'", "client_min_messages = 'debug5'",
        "default_transaction_isolation = 'serializable'",
        "default_transaction_deferrable = on", "row_security = off", "synchronous_commit = off", "lock_timeout = 1",
        "statement_timeout = '20s'", "idle_in_transaction_session_timeout = 1", "idle_session_timeout = '20s'",
        "transform_null_equals = on", "array_nulls = off", "quote_all_identifiers = on",
        "plan_cache_mode = 'force_generic_plan'",
    ]

    private let address: String

    init() throws {
        address = try PostgresServer.shared.database()
    }

    /// The address of a role without any other rights than those of the relay.
    private func odd(_ isPooled: Bool) -> String {
        let address = address.replacing("//herald@", with: "//odd@")
        return isPooled ? PostgresServer.pooled(address) : address
    }

    /// A queue with a policy for its rows, and the role `odd`.
    private func owner() async throws -> RelayStore {
        let owner = try RelayStore.patient(.postgresql(address))
        try await owner.prepare()
        // Another test may have made it.
        try await owner.run(
            "DO $$ BEGIN CREATE ROLE odd LOGIN; EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL; END $$"
        )
        try await owner.run("GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO odd")
        try await owner.run("ALTER TABLE push_queue ENABLE ROW LEVEL SECURITY")
        try await owner.run("CREATE POLICY everything ON push_queue USING (true)")
        return owner
    }

    /// Times and dead devices, read and written by a relay.
    private func useQueue(_ store: RelayStore) async throws {
        for (token, died) in [(Words.token, Words.now - .seconds(1)), (Words.other, Words.now + .seconds(1))] {
            var device = RelayDevice(token: token, topic: "com.example.chat")
            device.registered = Words.now
            try await store.register(device)
            let dead = DeadToken(token: token, topic: device.topic, time: died, evidence: "410")
            #expect(try await store.markDead([dead], held: false) == (died > Words.now ? 1 : 0))
        }
        let moment = WallTime(seconds: Words.now.seconds)
        let columns = "(device_token, topic, payload, send_after, give_up_at)"
        for token in [Words.token, Words.other] {
            try await store.run(
                "INSERT INTO push_queue \(columns) VALUES (?1, 'com.example.chat', ?2, ?3, ?4)",
                .text(token),
                .text(Words.payload),
                .text("\((moment - .seconds(10)).rfc3339.dropLast())+00"),
                .text((moment + .seconds(3600)).rfc3339)
            )
        }
        let rows = try await store.claim()
        try #require(rows.count == 2)
        for (row, isDead) in zip(rows, [false, true]) {
            #expect(try row.moment(.sendAfter, at: Words.now) == moment - .seconds(10))
            #expect(try row.moment(.giveUpAt, at: Words.now) == moment + .seconds(3600))
            let queued = try #require(try row.moment(.timeQueued, at: Words.now))
            #expect(abs(queued.seconds - Words.now.seconds) < 3600)
            #expect(row.device?.isDead == isDead && row[.payload].text == Words.payload)
        }
        _ = try await store.finish(rows[0], .final(.sent, reason: nil))
        _ = try await store.finish(rows[1], .final(.refused, reason: "Grüße"))
        let sent = try #require(try await store.push(rows[0].id))
        #expect(sent.timeSent == moment.rfc3339)
        #expect(try await store.push(rows[1].id)?.reason == "Grüße")
        let trip = DeadTokenBreaker.Trip(app: "a.b (production)", deadTokens: 21, answers: 30, since: Words.now)
        try await store.save(trip)
        let progress = try await store.progress(at: Words.now)
        #expect(progress.breakers.map(\.since) == [Words.now.rfc3339] && progress.deadDevices == 1)
        #expect(try await store.revive(TokenSelection()).tokens == 1)
        #expect(try await store.purge(RowSelection(before: Words.now - .seconds(3600)), isDryRun: false).count == 0)
        #expect(try await store.purge(RowSelection(), isDryRun: false).count == 2)
    }

    @Test(arguments: [false, true])
    func `no setting of a role changes what is read and written`(isPooled: Bool) async throws {
        let owner = try await owner()
        for setting in PostgresSettingsTests.settings {
            try await owner.run("ALTER ROLE odd IN DATABASE \(try #require(database)) SET \(setting)")
            let store = try RelayStore.patient(.postgresql(odd(isPooled)))
            do {
                try await useQueue(store)
            } catch {
                Issue.record("\(setting): \(error)")
            }
            await store.close()
            try await owner.run("DELETE FROM devices")
            try await owner.run("DELETE FROM push_queue")
            try await owner.run("ALTER ROLE odd IN DATABASE \(try #require(database)) RESET ALL")
        }
        await owner.close()
    }

    private var database: String? {
        address.split(separator: "/").last { $0.hasPrefix("relay") }?.split(separator: "?").first.map(String.init)
    }

    @Test(arguments: [false, true])
    func `all of them at once in a database do not either`(isPooled: Bool) async throws {
        let owner = try await owner()
        for setting in PostgresSettingsTests.settings {
            try await owner.run("ALTER DATABASE \(try #require(database)) SET \(setting)")
        }
        // The usual limits, but for time to begin.
        let limits = PostgresLimits(begin: PostgresLimits.patient.begin)
        let store = RelayStore(PostgresDatabase(address: odd(isPooled), limits: limits))
        try await useQueue(store)
        let names = [
            "TimeZone", "statement_timeout", "lock_timeout", "idle_in_transaction_session_timeout",
            "synchronous_commit",
            "transaction_isolation", "row_security", "search_path", "client_encoding",
        ]
        let values = try await store.run("SELECT " + names.map { "current_setting('\($0)')" }.joined(separator: ", "))
        #expect(
            values.first?.map(\.text) == [
                "UTC", "1min", "5s", "1min", "local", "read committed", "on", "\"$user\", public", "UTF8",
            ]
        )
        await store.close()
        await owner.close()
    }

    @Test func `a policy for rows is told`() async throws {
        let owner = try await owner()
        let store = try RelayStore.patient(.postgresql(odd(false)))
        #expect(try await store.prepare().map { $0.hasPrefix("row-level security is on for push_queue") } == [true])
        #expect(try await owner.prepare() == [])
        await store.close()
        await owner.close()
    }

    @Test func `a role that must not write is told which setting keeps it`() async throws {
        let owner = try await owner()
        try await owner.run(
            "ALTER ROLE odd IN DATABASE \(try #require(database)) SET default_transaction_read_only = on"
        )
        let store = try RelayStore.patient(.postgresql(odd(false)))
        #expect(try await store.prepare().first == "the relay cannot write: \(PostgresConnection.readOnly)")
        let error = await #expect(throws: RelayStoreError.self) { try await store.claim() }
        #expect(error?.code == .unavailable && error?.message.hasSuffix(PostgresConnection.readOnly) == true)
        try await owner.run("ALTER ROLE odd IN DATABASE \(try #require(database)) RESET ALL")
        // On a new connection.
        try await useQueue(store)
        await store.close()
        await owner.close()
    }

    @Test func `what other clients of a pooler set does not reach the relay, and the relay sets nothing for them`()
        async throws
    {
        let store = try RelayStore.patient(.postgresql(PostgresServer.pooled(address)))
        try await store.prepare()
        // As many as there are sessions, so that each has one of its own.
        let others = try (0..<2).map { _ in try PostgresConnection(PostgresServer.pooled(address)) }
        func values(_ sql: String) throws -> [String?] {
            for other in others { try other.command("BEGIN") }
            defer { for other in others { try? other.command("COMMIT") } }
            return try others.map { try $0.runOnce(sql, []).rows.first?[0].text }
        }
        try await useQueue(store)
        #expect(try values("SHOW statement_timeout") == ["0", "0"])
        #expect(try values("SHOW lock_timeout") == ["0", "0"])
        #expect(try values("SELECT count(*) FROM pg_prepared_statements") == ["0", "0"])
        #expect(try values("SELECT count(*) FROM pg_listening_channels()") == ["0", "0"])
        let own = "database = (SELECT oid FROM pg_database WHERE datname = current_database())"
        #expect(try values("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND \(own)") == ["0", "0"])
        for other in others { try other.command("BEGIN") }
        for other in others {
            try other.command("SET search_path = pg_catalog")
            try other.command("SET ROLE pg_read_all_data")
            try other.command("SET statement_timeout = 300")
            try other.command("SET DateStyle = 'German'")
            try other.command("PREPARE s0 AS SELECT 1")
            try other.command("COMMIT")
        }
        // The relay's statements wait for longer than the others' may.
        let (holder, watcher) = (try PostgresConnection(address), try PostgresConnection(address))
        try holder.command("BEGIN")
        try holder.command("LOCK TABLE push_queue IN ACCESS EXCLUSIVE MODE")
        let waiting = Task { try await useQueue(store) }
        let waits = "SELECT 1 FROM pg_locks WHERE NOT granted AND \(own)"
        while try watcher.runOnce(waits, []).rows.isEmpty { await Task.yield() }
        _ = try holder.runOnce("SELECT pg_sleep(1)", [])
        try holder.command("COMMIT")
        try await waiting.value
        await store.close()
    }
}
