import Foundation
import GRDB
import HeraldModel
import HeraldTrust

/// The tables of the ledger.
///
/// Each question of the running service and each change finds its rows by an index: its cost does not grow with the number
/// of certificates.
enum TrustTables {
    static let schema = Schema(
        tables: """
            CREATE TABLE certificate (
                number INTEGER PRIMARY KEY,
                id TEXT NOT NULL UNIQUE,
                serial TEXT NOT NULL,
                team TEXT,
                topics TEXT NOT NULL,
                environments TEXT NOT NULL,
                created INTEGER NOT NULL,
                expires INTEGER NOT NULL,
                revoked INTEGER
            ) STRICT;
            CREATE INDEX certificate_revoked ON certificate (revoked, serial) WHERE revoked IS NOT NULL;
            CREATE TABLE topic_claim (
                topic TEXT PRIMARY KEY,
                team TEXT NOT NULL,
                origin TEXT NOT NULL,
                since INTEGER NOT NULL
            ) STRICT, WITHOUT ROWID;
            CREATE INDEX topic_claim_use ON topic_claim (team) WHERE origin = 'use';
            CREATE TABLE device (
                number INTEGER PRIMARY KEY,
                id TEXT NOT NULL UNIQUE,
                name TEXT,
                created INTEGER NOT NULL,
                revoked INTEGER
            ) STRICT;
            CREATE INDEX device_revoked ON device (revoked) WHERE revoked IS NOT NULL;
            CREATE TABLE device_certificate (
                device INTEGER NOT NULL,
                position INTEGER NOT NULL,
                serial TEXT NOT NULL,
                expires INTEGER NOT NULL,
                PRIMARY KEY (device, position)
            ) STRICT, WITHOUT ROWID;
            CREATE TABLE invitation (
                number INTEGER PRIMARY KEY,
                id TEXT NOT NULL UNIQUE,
                name TEXT,
                lookup INTEGER NOT NULL,
                digest BLOB NOT NULL,
                created INTEGER NOT NULL,
                expires INTEGER NOT NULL,
                device TEXT,
                used INTEGER,
                withdrawn INTEGER
            ) STRICT;
            CREATE INDEX invitation_lookup ON invitation (lookup);
            CREATE INDEX invitation_unused ON invitation (expires) WHERE used IS NULL AND withdrawn IS NULL;
            CREATE TABLE setting (
                name TEXT PRIMARY KEY,
                value INTEGER NOT NULL
            ) STRICT, WITHOUT ROWID;
            INSERT INTO setting VALUES ('claims', 1);

            """ + SharedTables.tables,
        migrations: []
    )

    // MARK: - Provider certificates

    static let certificates =
        "SELECT id, serial, team, topics, environments, created, expires, revoked FROM certificate"

    static func certificate(_ row: CheckedRow) throws -> Credential {
        let topics = try topics(row, 3)
        let environments = try row.text(4).split(separator: " ").map {
            try CheckedRow.valid(PushEnvironment(rawValue: String($0)))
        }
        return Credential(
            id: try row.text(0),
            kind: .certificate,
            serial: try row.text(1),
            team: try row.optionalText(2),
            topics: topics,
            environments: Set(environments),
            created: try row.time(5),
            expires: try row.time(6),
            revoked: try row.optionalTime(7)
        )
    }

    /// Reads topics with blanks between.
    static func topics(_ row: CheckedRow, _ column: Int) throws -> [Topic] {
        try row.text(column).split(separator: " ").map { try CheckedRow.valid(Topic($0)) }
    }

    /// The topics of each certificate that is not revoked, with blanks between.
    static let certificateTopics = "SELECT topics FROM certificate WHERE revoked IS NULL"

    /// Serial number and identifier of each certificate, revoked or not.
    static let certificateNames = "SELECT serial, id FROM certificate"

    // MARK: - Topic claims

    static let claims = "SELECT topic, team, origin, since FROM topic_claim"

    /// Topic, team, origin, time, whether it takes over, and the most claims by use.
    static let addClaim = """
        INSERT INTO topic_claim (topic, team, origin, since)
        SELECT ?1, ?2, ?3, ?4
        WHERE ?3 <> 'use' OR (SELECT count(*) FROM topic_claim WHERE team = ?2 AND origin = 'use') < ?6
        ON CONFLICT (topic) DO UPDATE SET team = ?2, origin = ?3, since = ?4
        WHERE CASE team WHEN ?2 THEN origin = 'use' AND ?3 <> 'use' ELSE ?5 END
        """

    static func claim(_ row: CheckedRow) throws -> TopicClaim {
        TopicClaim(
            try CheckedRow.valid(Topic(try row.text(0))),
            team: try row.text(1),
            origin: try CheckedRow.valid(TopicClaim.Origin(rawValue: try row.text(2))),
            since: try row.time(3)
        )
    }

    static func claimsVersion(_ database: Database) throws -> Int64 {
        try Int64.fetchOne(database, sql: "SELECT value FROM setting WHERE name = 'claims'") ?? 0
    }

    static func bumpClaims(_ database: Database) throws {
        try database.execute(sql: "UPDATE setting SET value = value + 1 WHERE name = 'claims'")
    }

    // MARK: - Devices

    /// One row for each certificate, oldest device first.
    static func devices(
        _ database: Database,
        where condition: String = "TRUE",
        _ arguments: StatementArguments = []
    )
        throws -> [EnrolledDevice]
    {
        let sql = """
            SELECT id, name, created, revoked, serial, expires FROM device
            JOIN device_certificate ON device_certificate.device = device.number
            WHERE \(condition) ORDER BY device.number, position
            """
        var devices: [EnrolledDevice] = []
        try CheckedRow.forEach(database, sql: sql, arguments) { row in
            let id = try CheckedRow.valid(DeviceID(try row.text(0)))
            let certificate = EnrolledDevice.Certificate(serial: try row.text(4), expires: try row.time(5))
            if devices.last?.id == id {
                devices[devices.count - 1].renew(with: certificate)
            } else {
                devices.append(
                    EnrolledDevice(
                        id: id,
                        name: try row.optionalText(1),
                        certificate: certificate,
                        created: try row.time(2),
                        revoked: try row.optionalTime(3)
                    )
                )
            }
        }
        return devices
    }

    // MARK: - Invitations

    static let invitations = "SELECT id, name, digest, created, expires, device, used, withdrawn FROM invitation"

    static func invitation(_ row: CheckedRow) throws -> Invitation {
        let device = try row.optionalText(5).map { try CheckedRow.valid(DeviceID($0)) }
        return Invitation(
            id: try row.text(0),
            name: try row.optionalText(1),
            digest: try row.bytes(2),
            created: try row.time(3),
            expires: try row.time(4),
            used: try device.flatMap { device in try row.optionalTime(6).map { Invitation.Use(device: device, at: $0) }
            },
            withdrawn: try row.optionalTime(7)
        )
    }

    // MARK: - Revocations

    static func revokedSerials(of kind: PeerKind) -> String {
        switch kind {
        case .provider: "SELECT serial, revoked FROM certificate WHERE revoked IS NOT NULL"
        case .device:
            """
            SELECT serial, revoked FROM device JOIN device_certificate ON device_certificate.device = device.number
            WHERE revoked IS NOT NULL
            """
        }
    }
}
