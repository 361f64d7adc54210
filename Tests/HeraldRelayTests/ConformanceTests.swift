import HeraldModel
import Testing

@testable import HeraldRelay

/// Contract of a relay store, for both databases.
@Suite struct ConformanceTests {
    @Test(arguments: Engine.all) func `a row is claimed once and keeps its identifier`(_ engine: Engine) async throws {
        try await engine.with { store in
            let id = try await store.queue()
            let claimed = try await store.claim()
            #expect(claimed.map(\.id) == [id])
            let row = try #require(claimed.first)
            #expect(row.apnsID.flatMap { NotificationID($0) } != nil)
            #expect(!row.isUncertain && row.attempts == 0)
            #expect(row[.deviceToken].text == Words.token && row[.payload].text == Words.payload)
            #expect(try await store.claim(by: "two").isEmpty)
            // A lease that has lapsed is anybody's, and whoever takes the row knows that it may have been sent.
            let again = try await store.claim(by: "two", at: Words.now + .seconds(61))
            #expect(again.first?.apnsID == row.apnsID && again.first?.isUncertain == true)
        }
    }

    @Test(arguments: Engine.all) func `an extended lease lasts`(_ engine: Engine) async throws {
        try await engine.with { store in
            let id = try await store.queue()
            let other = try await store.queue(Words.other)
            #expect(try await store.claim().count == 2)
            try await store.extend([id], owner: "one", until: Words.now + .seconds(600))
            #expect(try await store.claim(by: "two", at: Words.now + .seconds(61)).map(\.id) == [other])
        }
    }

    @Test(arguments: Engine.all) func `the oldest are claimed first up to the limit`(_ engine: Engine) async throws {
        try await engine.with { store in
            var ids: [Int64] = []
            for _ in 0..<5 { ids.append(try await store.queue()) }
            #expect(try await store.claim(3).map(\.id) == Array(ids[..<3]))
            #expect(try await store.claim(3).map(\.id) == Array(ids[3...]))
        }
    }

    @Test(arguments: Engine.all) func `a long queue does not delay retries`(_ engine: Engine) async throws {
        try await engine.with { store in
            var ids: [Int64] = []
            for _ in 0..<3 { ids.append(try await store.queue()) }
            _ = try await store.claim(3, by: "gone")
            for _ in 0..<9 { ids.append(try await store.queue()) }
            // Before the lease ends, none of them; after it, half of the room at once.
            #expect(try await store.claim(2).map(\.id) == Array(ids[3..<5]))
            let later = Words.now + .seconds(61)
            #expect(try await store.claim(3, by: "two", at: later).map(\.id) == [ids[0], ids[1], ids[5]])
            // Where there is little else, all of the room.
            let rest = try await store.claim(20, by: "two", at: later)
            #expect(Set(rest.map(\.id)) == Set([ids[2], ids[3], ids[4]] + ids[6...]))
        }
    }

    @Test(arguments: Engine.all) func `an outcome is written once`(_ engine: Engine) async throws {
        try await engine.with { store in
            let id = try await store.queue()
            let row = try #require(try await store.claim().first)
            #expect(try await store.finish(row, .final(.sent, reason: nil)) == [FinishedRow(row: id, status: .sent)])
            #expect(try await store.finish(row, .final(.refused, reason: "BadTopic")).isEmpty)
            #expect(try await store.column("status", of: id).text == "sent")
            #expect(try await store.column("attempts", of: id).int == 1)
            #expect(try await store.column("owner", of: id) == .null)
            let record = try #require(try await store.push(id))
            let sent = try #require(record.timeSent.flatMap { WallTime(rfc3339: $0) })
            #expect(sent.seconds == Words.now.seconds)
        }
    }

    @Test(arguments: Engine.all) func `only sent rows have a time`(_ engine: Engine) async throws {
        try await engine.with { store in
            for status in FinalStatus.allCases where status != .sent {
                let id = try await store.queue()
                let row = try #require(try await store.claim().first)
                _ = try await store.finish(row, .final(status, reason: "Because"))
                #expect(try await store.column("time_sent", of: id) == .null)
                #expect(try await store.column("status", of: id).text == status.rawValue)
                #expect(try await store.column("reason", of: id).text == "Because")
            }
        }
    }

    @Test(arguments: Engine.all) func `counts that another program wrote are used within their range`(
        _ engine: Engine
    ) async throws {
        try await engine.with { store in
            for count in [Int64(Int32.max), Int64(Int32.min)] + (engine.name == "SQLite" ? [.max, .min] : []) {
                let id = try await store.queue()
                try await store.run(
                    "UPDATE push_queue SET attempts = \(count), uncertain = \(count) WHERE id = ?1",
                    .int(id)
                )
                let row = try #require(try await store.claim().first)
                #expect((0...1_000_000).contains(row.attempts) && (0...1_000_000).contains(row.lookups))
                _ = try await store.finish(row, .later(Words.now, reason: nil, uncertain: false, counts: true))
                let attempts = try #require(try await store.column("attempts", of: id).int)
                #expect((1...1_000_001).contains(attempts))
                _ = try await store.finish(try #require(try await store.claim().first), .final(.sent, reason: nil))
                #expect(try await store.column("status", of: id).text == "sent")
            }
        }
    }

    @Test(arguments: Engine.all) func `a row is claimed again when it is due`(_ engine: Engine) async throws {
        try await engine.with { store in
            let id = try await store.queue()
            let row = try #require(try await store.claim().first)
            let moment = Words.now + .seconds(10)
            _ = try await store.finish(row, .later(moment, reason: "TooManyRequests", uncertain: false, counts: true))
            #expect(try await store.nextDue() == moment)
            #expect(try await store.claim().isEmpty)
            let again = try #require(try await store.claim(at: moment).first)
            #expect(again.id == id && again.attempts == 1 && !again.isUncertain && again.apnsID == row.apnsID)
            // Whose claim it is no more cannot put it off.
            _ = try await store.finish(again, .later(moment, reason: nil, uncertain: false, counts: true), by: "two")
            #expect(try await store.column("owner", of: id).text == "one")
        }
    }

    @Test(arguments: Engine.all) func `a new send time wakes a waiting row`(_ engine: Engine) async throws {
        try await engine.with { store in
            let id = try await store.queue()
            let row = try #require(try await store.claim().first)
            _ = try await store.finish(
                row,
                .later(Words.now + .seconds(3600), reason: nil, uncertain: false, counts: false)
            )
            #expect(try await store.claim().isEmpty)
            try await store.run("UPDATE push_queue SET send_after = NULL WHERE id = ?1", .int(id))
            #expect(try await store.claim().map(\.id) == [id])
        }
    }

    @Test(arguments: Engine.all) func `a row for many tokens follows its parts`(_ engine: Engine) async throws {
        try await engine.with { store in
            let id = try await store.queue("[\"\(Words.token)\",\"\(Words.other)\"]")
            _ = try await store.claim()
            try await store.fanOut(id, to: [Words.token, Words.other], owner: "one")
            let parts = try await store.claim()
            #expect(parts.map { $0[.deviceToken].text } == [Words.token, Words.other])
            #expect(parts.allSatisfy { $0.parent == id && $0[.payload].text == Words.payload })
            #expect(try await store.finish(parts[0], .final(.sent, reason: nil)).count == 1)
            #expect(try await store.column("status", of: id).text == "queued")
            let last = try await store.finish(parts[1], .final(.refused, reason: "Unregistered"))
            #expect(last.contains(FinishedRow(row: id, status: .sent)))
            #expect(try await store.column("reason", of: id).text == "SentInPart")
            #expect(try await store.column("detail", of: id).text == "sent to 1 of 2")
            let record = try #require(try await store.push(id))
            #expect(record.outcomes.map(\.status) == ["sent", "refused"])
            let listed = try await store.run("SELECT count(*) FROM push_outcomes WHERE push_id = ?1", .int(id))
            #expect(listed.first?[0].int == 2)
        }
    }

    @Test(arguments: Engine.all) func `a token is dead unless registered since`(_ engine: Engine) async throws {
        try await engine.with { store in
            var device = RelayDevice(token: Words.token, topic: "com.example.chat")
            device.userName = "ann"
            device.registered = Words.now
            try await store.register(device)
            func dead(_ seconds: Int) -> DeadToken {
                DeadToken(token: Words.token, topic: device.topic, time: Words.now + .seconds(seconds), evidence: "410")
            }
            #expect(try await store.markDead([dead(-5)], held: false) == 0)
            #expect(try await store.tokens(of: "ann", topic: device.topic, limit: 9) == [Words.token])
            #expect(try await store.markDead([dead(5)], held: false) == 1)
            #expect(try await store.markDead([dead(6)], held: false) == 0)
            #expect(try await store.tokens(of: "ann", topic: device.topic, limit: 9).isEmpty)
            try await store.queue()
            #expect(try await store.claim().first?.device?.isDead == true)
            device.registered = Words.now + .seconds(9)
            try await store.register(device)
            #expect(try await store.tokens(of: "ann", topic: device.topic, limit: 9) == [Words.token])
        }
    }

    @Test(arguments: Engine.all) func `dead tokens are revived`(_ engine: Engine) async throws {
        try await engine.with { store in
            let deadTokens = [Words.token, Words.other].map {
                DeadToken(token: $0, topic: "com.example.chat", time: Words.now, evidence: "410")
            }
            #expect(try await store.markDead(deadTokens, held: false) == 2)
            #expect(try await store.progress(at: Words.now).deadDevices == 2)
            func revive(_ selection: TokenSelection) async throws -> Int {
                try await store.revive(selection).tokens
            }
            #expect(try await revive(TokenSelection(tokens: [Words.token.uppercased()])) == 1)
            #expect(try await revive(TokenSelection(since: Words.now + .seconds(1))) == 0)
            #expect(try await revive(TokenSelection(topic: "com.example.chat")) == 1)
            #expect(try await store.progress(at: Words.now).deadDevices == 0)
            #expect(try await store.markDead(deadTokens, held: true) == 2)
            let progress = try await store.progress(at: Words.now)
            #expect(progress.deadDevices == 0 && progress.heldDevices == 2)
        }
    }

    @Test(arguments: Engine.all) func `open breakers stay until an operator resets them`(_ engine: Engine) async throws
    {
        try await engine.with { store in
            func apps() async throws -> [String] { try await store.progress(at: Words.now).breakers.map(\.app) }
            for name in ["a.b (production)", "a.b (sandbox)", "c.d (production)"] {
                let trip = DeadTokenBreaker.Trip(app: name, deadTokens: 21, answers: 30, since: Words.now)
                try await store.save(trip)
                try await store.save(trip)
            }
            let first = try #require(try await store.progress(at: Words.now).breakers.first)
            #expect(first.deadTokens == 21 && first.answers == 30)
            // The moment is kept to the millisecond: another would be taken for another breaker.
            #expect(WallTime(rfc3339: first.since) == Words.now)
            // Single tokens, and what died of late, say nothing of the cause.
            _ = try await store.revive(TokenSelection(tokens: [Words.token], topic: "a.b"))
            _ = try await store.revive(TokenSelection(since: Words.now))
            #expect(try await apps().count == 3)
            let some = try await store.revive(TokenSelection(topic: "a.b", since: Words.now))
            #expect(some.breakers == ["a.b (production)", "a.b (sandbox)"])
            #expect(try await apps() == ["c.d (production)"])
            #expect(try await store.revive(TokenSelection()).breakers == ["c.d (production)"])
            #expect(try await apps().isEmpty)
        }
    }

    @Test(arguments: Engine.all) func `missing tables are created`(_ engine: Engine) async throws {
        try await engine.with { store in
            let id = try await store.queue()
            try await store.run("DROP TABLE push_breakers")
            try await store.prepare()
            #expect(try await store.progress(at: Words.now).breakers.isEmpty)
            #expect(try await store.claim().map(\.id) == [id])
        }
    }

    @Test(arguments: Engine.all) func `lookups are counted apart from attempts`(_ engine: Engine) async throws {
        try await engine.with { store in
            let id = try await store.queue()
            _ = try await store.claim()
            // Whoever had it is gone: it may have been sent.
            var now = Words.now + .seconds(61)
            for count in 0..<12 {
                let row = try #require(try await store.claim(at: now).first)
                #expect(row.isUncertain && row.lookups == count && row.attempts == 0)
                now = now + .seconds(9)
                _ = try await store.finish(row, .lookUp(now, reason: "Uncertain", lookups: count + 1))
            }
            #expect(try await store.progress(at: now - .seconds(1)).waiting == ["Uncertain": 1])
            // Sent again, the lookups begin anew.
            let row = try #require(try await store.claim(at: now).first)
            _ = try await store.finish(row, .later(now, reason: "TimedOut", uncertain: true, counts: true))
            let again = try #require(try await store.claim(at: now).first)
            #expect(again.id == id && again.isUncertain && again.lookups == 0 && again.attempts == 1)
        }
    }

    @Test(arguments: Engine.all) func `equal outcomes are written for each row`(_ engine: Engine) async throws {
        try await engine.with { store in
            for _ in 0..<6 { try await store.queue() }
            let rows = try await store.claim(5)
            let moment = Words.now + .seconds(5)
            let changes: [RowOutcome.Change] = [
                .final(.sent, reason: nil), .final(.sent, reason: nil), .final(.refused, reason: "BadTopic"),
                .later(moment, reason: "Shutdown", uncertain: false, counts: true),
                .later(moment, reason: "Shutdown", uncertain: false, counts: true),
            ]
            let outcomes = zip(rows, changes).map { RowOutcome(of: $0, $1, at: Words.now) }
            let finished = try await store.finish(outcomes, owner: "one")
            #expect(Dictionary(grouping: finished, by: \.status).mapValues(\.count) == [.sent: 2, .refused: 1])
            // Another owner's are not put off, and none is final twice.
            #expect(try await store.finish(outcomes, owner: "two").isEmpty)
            let progress = try await store.progress(at: Words.now)
            #expect(progress.rows == ["queued": 3, "sent": 2, "refused": 1] && progress.waiting == ["Shutdown": 2])
            #expect(try await store.claim(at: moment).map(\.attempts).sorted() == [0, 1, 1])
        }
    }

    @Test(arguments: Engine.all) func `a late outcome ends a row of another relay, but none that was queued anew`(
        _ engine: Engine
    ) async throws {
        try await engine.with { store in
            let ids = [try await store.queue(), try await store.queue()]
            let rows = try await store.claim()
            let lapsed = Words.now + .seconds(61)
            let again = try await store.claim(by: "two", at: lapsed)
            #expect(again.map(\.apnsID) == rows.map(\.apnsID) && again.count == 2)
            _ = try await store.finish(again[1], .final(.failed, reason: "Uncertain"), by: "two")
            #expect(try await store.retry(RowSelection(statuses: [.failed])) == 1)
            let anew = try #require(try await store.claim(by: "two", at: lapsed).first)
            #expect(anew.id == ids[1] && anew.apnsID != rows[1].apnsID)
            let finished = try await store.finish(
                rows.map { RowOutcome(of: $0, .final(.sent, reason: nil), at: Words.now) },
                owner: "one"
            )
            #expect(finished == [FinishedRow(row: ids[0], status: .sent)])
            #expect(try await store.column("status", of: ids[1]).text == "queued")
            #expect(try await store.finish(anew, .final(.sent, reason: nil), by: "two").count == 1)
        }
    }

    @Test(arguments: Engine.all) func `a row whose parts were deleted is finished`(_ engine: Engine) async throws {
        try await engine.with { store in
            let (half, none, open) = (try await store.queue(), try await store.queue(), try await store.queue())
            #expect(try await store.claim().count == 3)
            for id in [half, none, open] { try await store.fanOut(id, to: ["a", "b"], owner: "one") }
            let parts = try await store.claim().filter { $0.parent == half }
            try #require(parts.count == 2)
            #expect(try await store.finish(parts[0], .final(.sent, reason: nil)).count == 1)
            try await store.run("DELETE FROM push_queue WHERE id = ?1", .int(parts[1].id))
            try await store.run("DELETE FROM push_queue WHERE parent = ?1", .int(none))
            let (finished, last) = try await store.settle(after: 0)
            #expect(Set(finished) == [FinishedRow(row: half, status: .sent), FinishedRow(row: none, status: .failed)])
            #expect(last == nil)
            #expect(try await store.column("reason", of: half).text == "SentInPart")
            #expect(try await store.column("reason", of: none).text == "PartsDeleted")
            #expect(try await store.column("status", of: open).text == "queued")
            #expect(try await store.settle(after: 0).finished.isEmpty)
        }
    }

    @Test(arguments: Engine.all) func `progress distinguishes scheduled from stuck rows`(_ engine: Engine) async throws
    {
        try await engine.with { store in
            let rows = [
                try await store.queue(), try await store.queue(), try await store.queue(), try await store.queue(),
            ]
            let claimed = try await store.claim(3)
            _ = try await store.finish(
                claimed[0],
                .later(Words.now + .seconds(90), reason: nil, uncertain: false, counts: false)
            )
            _ = try await store.finish(
                claimed[1],
                .later(Words.now + .seconds(9), reason: "Shutdown", uncertain: false, counts: true)
            )
            try await store.run(
                "UPDATE push_queue SET time_queued = ?2 WHERE id = ?1",
                .int(rows[3]),
                StoredMoment.text(Words.now - .seconds(77))
            )
            let progress = try await store.progress(at: Words.now)
            #expect(progress.rows == ["queued": 4] && progress.scheduled == 1 && progress.retrying == 1)
            #expect(progress.claims.map(\.owner) == ["one"] && progress.claims.map(\.rows) == [1])
            #expect((76...78).contains(try #require(progress.oldestUnsentSeconds)))
            #expect(try await store.progress(at: Words.now + .seconds(61)).claims.first?.lapsed == true)
        }
    }

    @Test(arguments: Engine.all) func `final rows are retried or purged`(_ engine: Engine) async throws {
        try await engine.with { store in
            for status in [FinalStatus.sent, .refused, .failed] {
                try await store.queue()
                let row = try #require(try await store.claim().first)
                _ = try await store.finish(row, .final(status, reason: status == .sent ? nil : "Because"))
            }
            let waiting = try await store.queue()
            #expect(try await store.retry(RowSelection(statuses: [.refused, .failed], reason: "Other")) == 0)
            #expect(try await store.retry(RowSelection(statuses: [.refused])) == 1)
            let claimed = try await store.claim()
            #expect(claimed.count == 2 && claimed.allSatisfy { $0.attempts == 0 && !$0.isUncertain })
            let old = RowSelection(before: Words.now - .seconds(3600))
            #expect(try await store.purge(old, isDryRun: false).count == 0)
            let found = try await store.purge(RowSelection(), isDryRun: true)
            let day = Words.now - .seconds(86_400)...Words.now + .seconds(86_400)
            #expect(found.count == 2 && found.queued?.clamped(to: day) == found.queued && found.queued != nil)
            #expect(try await store.purge(RowSelection(), isDryRun: false).count == 2)
            #expect(try await store.purge(RowSelection(), isDryRun: false).queued == nil)
            #expect(try await store.push(waiting) != nil)
        }
    }

    @Test(arguments: Engine.all) func `final rows are deleted by age`(_ engine: Engine) async throws {
        try await engine.with { store in
            var ended: [FinalStatus: Int64] = [:]
            for status in FinalStatus.allCases {
                ended[status] = try await store.queue()
                let row = try #require(try await store.claim().first)
                _ = try await store.finish(row, .final(status, reason: status == .sent ? nil : "Because"))
            }
            let waiting = try await store.queue()
            let later = WallTime(seconds: Words.now.seconds + 1_000_000_000)
            let past = Words.now - .seconds(1_000_000_000)
            func delete(_ statuses: [FinalStatus], _ end: WallTime) async throws -> Int {
                let result = try await store.deleteOld(statuses, endedBefore: end, after: .min)
                #expect(result.last == nil)
                return result.deleted
            }
            #expect(try await delete(FinalStatus.allCases, past) == 0)
            #expect(try await delete([.sent], later) == 1)
            #expect(try await store.push(try #require(ended[.sent])) == nil)
            #expect(try await store.push(try #require(ended[.refused])) != nil)
            #expect(try await delete([.refused, .expired, .failed], later) == 3)
            #expect(try await store.push(waiting) != nil, "a queued row is never deleted")
        }
    }

    @Test(arguments: Engine.all) func `the age of an unsent row counts from its outcome`(_ engine: Engine) async throws
    {
        try await engine.with { store in
            let ids = [try await store.queue(), try await store.queue()]
            try await store.run("UPDATE push_queue SET time_queued = '2020-01-01 00:00:00'")
            let rows = try await store.claim()
            try await store.fanOut(ids[0], to: [Words.token], owner: "one")
            let part = try #require(try await store.claim().first)
            _ = try await store.finish(part, .final(.expired, reason: "Late"))
            _ = try await store.finish(try #require(rows.last), .final(.expired, reason: "Late"))
            func delete(before end: WallTime) async throws -> Int {
                try await store.deleteOld([.expired], endedBefore: end, after: .min).deleted
            }
            #expect(try await delete(before: Words.now - .seconds(60)) == 0)
            try await store.run(
                "INSERT INTO push_queue (status, time_queued) VALUES ('expired', '2020-01-01 00:00:00')"
            )
            #expect(try await delete(before: Words.now - .seconds(60)) == 1, "another program's row")
            _ = try await delete(before: Words.now + .seconds(60))
            for id in ids { #expect(try await store.push(id) == nil) }
        }
    }

    @Test(arguments: Engine.all) func `one deletion checks a limited number of rows`(_ engine: Engine) async throws {
        try await engine.with { store in
            try await store.run(
                """
                INSERT INTO push_queue (device_token, status, time_sent)
                WITH RECURSIVE number(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM number WHERE n < 600)
                SELECT 'ab', 'sent', CURRENT_TIMESTAMP FROM number
                """
            )
            let end = Words.now - .seconds(3600)
            let first = try await store.deleteOld([.sent], endedBefore: end, after: .min)
            let last = try #require(first.last, "rows that are not old count, too")
            #expect(first.deleted == 0)
            #expect(try await store.deleteOld([.sent], endedBefore: end, after: last).last == nil)
        }
    }

    @Test(arguments: Engine.all) func `rows in doubt are counted and retried`(_ engine: Engine) async throws {
        try await engine.with { store in
            let ends: [RowOutcome.Change] = [
                .final(.failed, reason: RowOutcome.inDoubt), .final(.expired, reason: RowOutcome.inDoubt),
                .final(.failed, reason: "NoCredential"),
                .later(Words.now, reason: "Uncertain", uncertain: true, counts: true),
            ]
            for end in ends {
                try await store.queue()
                _ = try await store.finish(try #require(try await store.claim().last), end)
            }
            #expect(try await store.progress(at: Words.now).inDoubt == 2)
            let selection = RowSelection(statuses: [.refused, .failed, .expired], reason: RowOutcome.inDoubt)
            #expect(try await store.retry(selection) == 2)
            #expect(try await store.progress(at: Words.now).inDoubt == 0)
        }
    }

    @Test(arguments: Engine.all) func `tokens of any length are registered and die`(_ engine: Engine) async throws {
        try await engine.with { store in
            for length in [1, 54, 100] {
                let token = String(repeating: "ab", count: length)
                var device = RelayDevice(token: token, topic: "com.example.chat")
                device.registered = Words.now - .seconds(60)
                try await store.register(device)
                let dead = DeadToken(token: token, topic: "com.example.chat", time: Words.now, evidence: "410")
                #expect(try await store.markDead([dead], held: false) == 1)
                try await store.queue(token.uppercased())
                #expect(try await store.claim().first?.device?.isDead == true)
            }
        }
    }

    @Test(arguments: Engine.all) func `templates are found by language`(_ engine: Engine) async throws {
        try await engine.with { store in
            try await store.run("INSERT INTO push_templates (name, payload) VALUES ('hi', '{}')")
            try await store.run("INSERT INTO push_templates (name, language, payload) VALUES ('hi', 'de', '{\"a\":1}')")
            #expect(try await store.template("hi") == ["": "{}", "de": #"{"a":1}"#])
            #expect(try await store.template("ho").isEmpty)
        }
    }

    @Test(arguments: Engine.all) func `writes of other programs are reported`(_ engine: Engine) async throws {
        try await engine.withBare { store, address in
            try await store.prepare()
            let second = try RelayStore.patient(address)
            var changes = store.changes { _ in }.makeAsyncIterator()
            await changes.next()
            // Where it has to connect first, the next may tell that it listens now.
            for token in [Words.token, Words.other] {
                try await second.queue(token)
                await changes.next()
            }
            #expect(try await store.claim().count == 2)
            await second.close()
        }
    }

    @Test(arguments: Engine.all) func `tables with other columns are refused`(_ engine: Engine) async throws {
        try await engine.withBare { store, _ in
            try await store.run("CREATE TABLE push_queue (id integer)")
            await #expect(throws: RelayStoreError.self) { try await store.prepare() }
        }
    }
}
