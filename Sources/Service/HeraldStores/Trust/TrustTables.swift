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
                revoked INTEGER,
                invitation TEXT,
                labels TEXT NOT NULL DEFAULT '',
                labels_revision INTEGER NOT NULL DEFAULT 0,
                kept BLOB,
                kept_revision INTEGER NOT NULL DEFAULT 0,
                seen INTEGER,
                announcement INTEGER NOT NULL DEFAULT 0
            ) STRICT;
            CREATE TABLE device_sighting (
                device INTEGER PRIMARY KEY,
                time INTEGER NOT NULL,
                address TEXT NOT NULL
            ) STRICT;
            CREATE INDEX device_revoked ON device (revoked) WHERE revoked IS NOT NULL;
            CREATE INDEX device_returned ON device (invitation) WHERE revoked IS NOT NULL AND seen IS NULL;
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
                device TEXT,
                labels TEXT NOT NULL DEFAULT '',
                lookup INTEGER NOT NULL,
                digest BLOB NOT NULL,
                created INTEGER NOT NULL,
                expires INTEGER NOT NULL,
                uses INTEGER NOT NULL,
                taken INTEGER NOT NULL DEFAULT 0,
                recent TEXT NOT NULL DEFAULT '',
                withdrawn INTEGER
            ) STRICT;
            CREATE INDEX invitation_lookup ON invitation (lookup);
            CREATE INDEX invitation_unused ON invitation (expires) WHERE taken < uses AND withdrawn IS NULL;
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

    /// Devices in the order of their identifiers.
    static func devices(
        _ database: Database,
        where condition: String = "TRUE",
        _ arguments: StatementArguments = []
    )
        throws -> [EnrolledDevice]
    {
        let sql = """
            SELECT id, name, created, revoked, serial, expires, invitation, labels, labels_revision, time, address,
                kept, kept_revision, seen, announcement
            FROM device JOIN device_certificate ON device_certificate.device = device.number
            LEFT JOIN device_sighting ON device_sighting.device = device.number
            WHERE \(condition) ORDER BY id, position
            """
        var devices: [EnrolledDevice] = []
        try CheckedRow.forEach(database, sql: sql, arguments) { row in
            let id = try CheckedRow.valid(DeviceID(try row.text(0)))
            let certificate = EnrolledDevice.Certificate(serial: try row.text(4), expires: try row.time(5))
            if devices.last?.id == id {
                devices[devices.count - 1].renew(with: certificate)
            } else {
                var device = EnrolledDevice(
                    id: id,
                    name: try row.optionalText(1),
                    certificate: certificate,
                    created: try row.time(2),
                    revoked: try row.optionalTime(3),
                    invitation: try row.optionalText(6)
                )
                device.labels = try CheckedRow.valid(
                    DeviceLabels(lines: try row.text(7), revision: try row.integer(8))
                )
                device.sighting = try row.optionalTime(9).map {
                    DeviceSighting(device: id, at: $0, address: try row.text(10))
                }
                device.kept = KeptCertificate(try row.optionalBytes(11), revision: try row.integer(12))
                device.seen = try row.optionalTime(13)
                device.announcement = try row.integer(14)
                devices.append(device)
            }
        }
        return devices
    }

    // MARK: - Invitations

    static let invitations = """
        SELECT id, name, digest, created, expires, uses, taken, recent, withdrawn, device, labels, \(returned) FROM invitation
        """

    /// The number of uses that are free again.
    static let returned = """
        (SELECT count(*) FROM device WHERE device.invitation = invitation.id AND revoked IS NOT NULL AND seen IS NULL)
        """

    static func invitation(_ row: CheckedRow) throws -> Invitation {
        var invitation = Invitation(
            id: try row.text(0),
            name: try row.optionalText(1),
            digest: try row.bytes(2),
            created: try row.time(3),
            expires: try row.time(4),
            uses: try row.number(5),
            taken: try row.number(6),
            recent: try row.text(7).split(separator: " ").map { try CheckedRow.valid(use($0)) },
            withdrawn: try row.optionalTime(8)
        )
        invitation.device = try row.optionalText(9).map { try CheckedRow.valid(DeviceID($0)) }
        invitation.labels = try CheckedRow.valid(DeviceLabels(lines: try row.text(10), revision: 0)).all
        invitation.returned = try row.number(11)
        return invitation
    }

    /// Reads a use of the form `milliseconds:device`.
    private static func use(_ text: Substring) -> Invitation.Use? {
        let parts = text.split(separator: ":", maxSplits: 1)
        guard parts.count == 2, let time = Int64(parts[0]), let device = DeviceID(String(parts[1])) else { return nil }
        return Invitation.Use(device: device, at: WallTime(milliseconds: time))
    }

    /// Writes what ``use(_:)`` reads.
    static func recent(_ uses: some Sequence<(device: String, at: Int64)>) -> String {
        uses.map { "\($0.at):\($0.device)" }.joined(separator: " ")
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
