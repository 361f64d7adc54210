import Foundation
import GRDB
import HeraldIdentity
import HeraldModel
import HeraldTestSupport
import HeraldTrust
import Testing

@testable import HeraldStores

@Suite final class TrustDatabaseTests {
    private let layout: TrustLayout
    private var path: String { layout.ledger }
    private let now = WallTime(seconds: 1_900_000_000)

    init() throws {
        layout = TrustLayout(data: NSTemporaryDirectory() + "/herald-ledger-" + UUID().uuidString)
        try FileManager.default.createDirectory(atPath: layout.folder, withIntermediateDirectories: true)
    }

    deinit {
        try? FileManager.default.removeItem(atPath: layout.data)
    }

    private func open(mayCreate: Bool = false) throws -> any TrustStore {
        try TrustDatabase.open(layout, mayCreate: mayCreate)
    }

    private func device(_ number: Int) -> EnrolledDevice {
        guard let id = DeviceID("d\(number)") else { preconditionFailure("no identifier") }
        return EnrolledDevice(id: id, name: nil, certificate: .init(serial: "40", expires: now), created: now)
    }

    @Test(arguments: TrustStoreConformance.rules)
    func `the database keeps every rule`(rule: TrustStoreConformance.Rule) async throws {
        try await rule.check(try open(mayCreate: true))
    }

    @Test(arguments: TrustStoreConformance.rules)
    func `the store in memory keeps every rule`(rule: TrustStoreConformance.Rule) async throws {
        try await rule.check(MemoryTrustStore())
    }

    @Test func `what is added is there after it is opened again, and in another connection`() async throws {
        let (first, second) = (try open(mayCreate: true), try open())
        #expect(try await first.add(device(1), invitation: nil))
        #expect(try await second.devices() == [device(1)])
        #expect(try await second.add(device(1), invitation: nil) == false)
        let third = try open()
        #expect(try await third.devices() == [device(1)])
    }

    @Test func `connections that write at the same time wait for each other`() async throws {
        let stores = [try open(mayCreate: true), try open(), try open()]
        try await withThrowingTaskGroup(of: Void.self) { group in
            for number in 0..<30 {
                let device = device(number)
                group.addTask { _ = try await stores[number % 3].add(device, invitation: nil) }
            }
            try await group.waitForAll()
        }
        #expect(try await stores[0].devices().count == 30)
    }

    @Test func `commits are durable, and no other file stays`() async throws {
        let store = try #require(try open(mayCreate: true) as? TrustDatabase)
        #expect(try await store.add(device(1), invitation: nil))
        let synchronous = try await store.read { try Int.fetchOne($0, sql: "PRAGMA synchronous") }
        #expect(synchronous == 3)
        #expect(try FileManager.default.contentsOfDirectory(atPath: layout.folder) == ["ledger.db"])
        let mode = try FileManager.default.attributesOfItem(atPath: path)[.posixPermissions] as? NSNumber
        #expect(mode?.intValue == 0o600)
    }

    @Test func `a missing, empty or exposed file is refused and stays as it is`() throws {
        #expect(throws: TrustError(.missing, "")) { try open() }
        #expect(!FileManager.default.fileExists(atPath: path))
        try TrustFile.createSecret(path)
        #expect(throws: TrustError(.damaged, "")) { try open() }
        #expect(try TrustFile.read(path, .secret).isEmpty)
        _ = try open(mayCreate: true)
        chmod(path, 0o640)
        let error = #expect(throws: TrustError.self) { try open() }
        #expect(error?.code == .exposed && error?.message.contains("chmod 600 \(path)") == true)
    }

    @Test(arguments: [0..<64, 16..<80, 24_576..<28_672])
    func `a damaged file is refused and stays as it is`(damage: Range<Int>) async throws {
        let store = try open(mayCreate: true)
        for number in 0..<200 { #expect(try await store.add(device(number), invitation: nil)) }
        var bytes = try TrustFile.read(path, .secret)
        for index in damage { bytes[index] = 0xDE }
        try TrustFile.write(bytes, to: path, .secret)
        await #expect(throws: TrustError(.damaged, "")) { try await open().devices() }
        #expect(try TrustFile.read(path, .secret) == bytes)
    }

    @Test func `a database of another program, and one of a newer Herald, are refused`() throws {
        let other = try DatabaseQueue(path: path)
        try other.write { try $0.execute(sql: "CREATE TABLE stranger (a); PRAGMA user_version = 1") }
        chmod(path, 0o600)
        #expect(throws: TrustError(.damaged, "")) { try open() }
        try other.write {
            try $0.execute(sql: "PRAGMA application_id = \(TrustDatabase.applicationID); PRAGMA user_version = 2")
        }
        let error = #expect(throws: TrustError.self) { try open() }
        #expect(error?.message.contains("newer Herald") == true)
    }

    @Test func `a full disk is named, with what helps`() async throws {
        let store = try #require(try open(mayCreate: true) as? TrustDatabase)
        let error = await #expect(throws: TrustError.self) {
            try await store.change {
                try $0.execute(sql: "PRAGMA max_page_count = 1; CREATE TABLE large AS SELECT zeroblob(1000000)")
            }
        }
        #expect(error?.message == "cannot write \(path): the disk is full; free some space, and repeat the command")
    }

    @Test func `a ledger that lacks a table is of an unreleased build`() async throws {
        let store = try #require(try open(mayCreate: true) as? TrustDatabase)
        let error = await #expect(throws: TrustError.self) {
            try await store.change { try $0.execute(sql: "DROP TABLE device; SELECT * FROM device") }
        }
        #expect(error?.message.contains("no such table: device") == true)
        #expect(error?.message.contains("start with a new data folder") == true)
    }

    @Test func `a file that is too long for the other nodes is named, until it is not`() async throws {
        let (data, open) = (layout.data + "/node", TrustDatabase.open)
        let folder = try await TrustFolder.create(at: data, store: open, now: now)
        let authority = folder.layout.folder + "/device-authority.pem"
        let text = String(decoding: try TrustFile.read(authority, .secret), as: UTF8.self)
        let key = try #require(text.range(of: "-----BEGIN PRIVATE KEY-----"))
        let certificates = text[..<key.lowerBound]
        // Its key is elsewhere, so this list is the authority's.
        try TrustFile.write(Array(certificates.utf8), to: authority, .secret)
        let sharing = try FolderSharing(try TrustFolder.load(at: data, store: open))
        let list = folder.layout.revocationList(.device)
        for (length, isTooLong) in [(700_000, false), (700_001, true), (10, false)] {
            try TrustFile.write([UInt8](repeating: 0, count: length), to: list, .open)
            let facts = try await sharing.unshared(limit: 100).map(\.fact.key.name)
            #expect(facts.contains(SharedFile.Name.deviceList.rawValue) == !isTooLong)
            #expect(sharing.tooLongFiles.count == (isTooLong ? 1 : 0))
            #expect(sharing.tooLongFiles.allSatisfy { $0.contains(list) && $0.contains("copy it") })
        }
    }

    @Test func `a damaged row is an error`() async throws {
        let store = try #require(try open(mayCreate: true) as? TrustDatabase)
        #expect(try await store.add(device(1), invitation: nil))
        try await store.change { try $0.execute(sql: "UPDATE device SET id = 'k 9'") }
        await #expect(throws: TrustError(.damaged, "")) { try await store.devices() }
    }

    /// Left out, such a row could undo a revocation.
    @Test(arguments: ["revoked = 'x'", "revoked = x'00'", "expires = 'x'", "topics = 'com/example'", "id = x'FF00'"])
    func `a damaged value of a certificate is an error, and no certificate is left out`(damage: String) async throws {
        let store = try #require(try open(mayCreate: true) as? TrustDatabase)
        try await store.change { database in
            // The same table without its types.
            try database.execute(
                sql: """
                    CREATE TABLE lax AS SELECT * FROM certificate;
                    DROP TABLE certificate;
                    ALTER TABLE lax RENAME TO certificate;
                    INSERT INTO certificate VALUES (1, 'A', '40', 'TEAM123456', 'com.example.a', 'sandbox', 1, 2, 3);
                    UPDATE certificate SET \(damage);
                    """
            )
        }
        await #expect(throws: TrustError(.damaged, "")) { try await store.certificates() }
        guard damage.hasPrefix("revoked") else { return }
        await #expect(throws: TrustError(.damaged, "")) { try await store.revokedSerials(of: .provider) }
    }

    /// The statements of enrolling, renewing, revoking, activating and reloading, and of no list.
    @Test func `no statement of a change or of the running service scans a table of certificates`() async throws {
        let store = try #require(try open(mayCreate: true) as? TrustDatabase)
        let statements = Statements()
        try await store.read { database in
            database.trace { event in
                if case .statement(let statement) = event { statements.add(statement.sql) }
            }
        }
        let invitation = Invitation(
            id: "i",
            name: nil,
            digest: Array(0..<32),
            created: now,
            expires: now + .seconds(60)
        )
        _ = try await store.add([invitation], limit: 9, now: now)
        _ = try await store.invitations(lookupKey: Invitation.lookupKey(invitation.digest))
        _ = try await store.invitation("i")
        _ = try await store.add(device(1), invitation: "i")
        _ = try await store.renew(
            device(1).id,
            with: .init(serial: "41", expires: now),
            kept: nil,
            use: nil,
            limit: 9,
            now: now
        )
        _ = try await store.device(device(1).id)
        _ = try await store.revokeDevice(device(1).id, at: now)
        _ = try await store.withdrawInvitation("i", at: now)
        _ = try await store.certificate("A")
        _ = try await store.revokeCertificate("A", at: now)
        for kind in PeerKind.allCases { _ = try await store.revokedSerials(of: kind) }
        let version = try await store.topicClaims(after: nil)?.version
        // Read only when claims or the certificates of providers have changed.
        statements.ignore(TrustTables.claims)
        statements.ignore(TrustTables.certificateTopics)
        let claim = TopicClaim(try #require(Topic("com.example.app")), team: "A", origin: .use, since: now)
        try await store.claim([claim], takesOver: false)
        _ = try await store.release([claim.topic])
        _ = try await store.topicClaims(after: version)
        // Triggers show as comments; they do nothing here, since the ledger is not shared.
        // Providers have few certificates; their names are read as a whole when one has changed.
        let others = ["P", "BEGIN", "COMMIT", "--", "SELECT serial, id FROM certificate"]
        let asked = statements.all.filter { sql in !others.contains { sql.hasPrefix($0) } }
        #expect(asked.count >= 15)
        let plans = try await store.read { database in
            try asked.map { sql in
                var steps: [String] = []
                try HotStatement(database, sql: "EXPLAIN QUERY PLAN " + sql).forEachRow { row in
                    steps.append(row.text(3) ?? "")
                    return true
                }
                return steps.joined(separator: "; ")
            }
        }
        for (sql, plan) in zip(asked, plans) {
            let scans = plan.split(separator: "; ").filter { $0.hasPrefix("SCAN ") && $0 != "SCAN CONSTANT ROW" }
            // A partial index has the revoked ones only.
            #expect(scans.allSatisfy { $0.contains("_revoked") }, "\(sql): \(plan)")
        }
    }

    private final class Statements: @unchecked Sendable {
        // Guarded by the lock.
        private var found: [String] = []
        private var ignored: [String] = []
        private let lock = NSLock()

        func add(_ sql: String) { lock.withLock { found.append(sql) } }
        func ignore(_ text: String) { lock.withLock { ignored.append(text) } }
        var all: [String] { lock.withLock { found.filter { sql in !ignored.contains { sql.contains($0) } } } }
    }
}
