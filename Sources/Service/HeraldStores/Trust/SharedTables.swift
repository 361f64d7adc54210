import GRDB
import HeraldTrust

/// The tables with which a ledger is shared among the nodes of a cluster.
///
/// Triggers note each change in `unshared`, whichever process makes it. Without a cluster, they do nothing.
enum SharedTables {
    static let tables =
        """
        CREATE TABLE unshared (
            number INTEGER PRIMARY KEY AUTOINCREMENT,
            kind TEXT NOT NULL,
            name TEXT NOT NULL,
            UNIQUE (kind, name)
        ) STRICT;
        CREATE TABLE topic_revision (
            topic TEXT PRIMARY KEY,
            revision INTEGER NOT NULL
        ) STRICT, WITHOUT ROWID;
        CREATE TABLE shared_file (
            name TEXT PRIMARY KEY,
            revision INTEGER NOT NULL,
            digest BLOB NOT NULL
        ) STRICT, WITHOUT ROWID;
        INSERT INTO setting VALUES ('shared', 0);

        """
        + trigger(on: "certificate", after: "INSERT", .certificate, "NEW.id")
        + trigger(on: "certificate", after: "UPDATE", .certificate, "NEW.id")
        + trigger(on: "device", after: "INSERT", .device, "NEW.id")
        + trigger(on: "device", after: "UPDATE", .device, "NEW.id")
        + trigger(
            on: "device_certificate",
            after: "INSERT",
            .device,
            "(SELECT id FROM device WHERE number = NEW.device)"
        )
        + trigger(on: "invitation", after: "INSERT", .invitation, "NEW.id")
        + trigger(on: "invitation", after: "UPDATE", .invitation, "NEW.id")
        + trigger(on: "topic_claim", after: "INSERT", .topic, "NEW.topic", nextRevision("NEW.topic"))
        + trigger(on: "topic_claim", after: "UPDATE", .topic, "NEW.topic", nextRevision("NEW.topic"))
        + trigger(on: "topic_claim", after: "DELETE", .topic, "OLD.topic", nextRevision("OLD.topic"))

    private static func trigger(
        on table: String,
        after event: String,
        _ kind: SharedKey.Kind,
        _ name: String,
        _ more: String = ""
    ) -> String {
        """
        CREATE TRIGGER \(table)_\(event.lowercased())_unshared AFTER \(event) ON \(table)
        WHEN (SELECT value FROM setting WHERE name = 'shared') = 1 BEGIN
            DELETE FROM unshared WHERE kind = '\(kind.rawValue)' AND name = \(name);
            INSERT INTO unshared (kind, name) VALUES ('\(kind.rawValue)', \(name));
            \(more)
        END;

        """
    }

    private static func nextRevision(_ topic: String) -> String {
        """
        INSERT INTO topic_revision VALUES (\(topic), 1) ON CONFLICT (topic) DO UPDATE SET revision = revision + 1;
        """
    }

    /// Notes everything as unshared; revocations first, since another node may begin to serve soon.
    static let allUnshared = """
        DELETE FROM unshared;
        INSERT INTO unshared (kind, name) SELECT 'certificate', id FROM certificate ORDER BY revoked IS NULL;
        INSERT INTO unshared (kind, name) SELECT 'device', id FROM device WHERE revoked IS NOT NULL;
        INSERT INTO unshared (kind, name) SELECT 'topic', topic FROM topic_revision;
        INSERT INTO unshared (kind, name) SELECT 'invitation', id FROM invitation;
        INSERT INTO unshared (kind, name) SELECT 'device', id FROM device WHERE revoked IS NULL;
        DELETE FROM shared_file;
        DELETE FROM setting WHERE name = 'position';
        """

    // MARK: - Reading facts

    /// Reads the ledger's fact of a key; nil if there is none.
    static func fact(_ kind: SharedKey.Kind, _ name: String, _ database: Database) throws -> SharedFact? {
        switch kind {
        case .file, .tokenKeys, .providerKey: return nil
        case .certificate:
            let sql = TrustTables.certificates + " WHERE id = ?"
            return try CheckedRow.all(database, sql: sql, [name], TrustTables.certificate).first
                .flatMap { SharedCertificate($0) }.map { .certificate($0) }
        case .device:
            return try TrustTables.devices(database, where: "id = ?", [name]).first.map { .device(SharedDevice($0)) }
        case .invitation:
            return try CheckedRow.all(
                database,
                sql: TrustTables.invitations + " WHERE id = ?",
                [name],
                TrustTables.invitation
            ).first
                .map { .invitation(SharedInvitation($0)) }
        case .topic: return try topic(name, database).map { .topic($0) }
        }
    }

    private static func topic(_ name: String, _ database: Database) throws -> SharedTopic? {
        let sql = """
            SELECT revision, team, origin, since FROM topic_revision LEFT JOIN topic_claim USING (topic) WHERE topic = ?
            """
        return try CheckedRow.all(database, sql: sql, [name]) { row in
            let owner = try row.optionalText(1).map { team in
                SharedTopic.Owner(
                    team: team,
                    origin: try CheckedRow.valid(TopicClaim.Origin(rawValue: try row.text(2))),
                    since: try row.integer(3)
                )
            }
            return SharedTopic(topic: name, revision: try row.integer(0), owner: owner)
        }.first
    }

    // MARK: - Writing facts

    /// Writes a merged fact in place of the present one.
    static func write(_ fact: SharedFact, _ database: Database) throws {
        switch fact {
        case .file, .tokenKeys, .providerKey: break
        case .certificate(let certificate): try write(certificate, database)
        case .device(let device): try write(device, database)
        case .invitation(let invitation): try write(invitation, database)
        case .topic(let topic): try write(topic, database)
        }
    }

    private static func write(_ certificate: SharedCertificate, _ database: Database) throws {
        let sql = """
            INSERT INTO certificate (id, serial, team, topics, environments, created, expires, revoked)
            VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)
            ON CONFLICT (id) DO UPDATE
            SET serial = ?2, team = ?3, topics = ?4, environments = ?5, created = ?6, expires = ?7, revoked = ?8
            """
        try database.cachedStatement(sql: sql).execute(arguments: [
            certificate.id, certificate.serial, certificate.team, certificate.topics, certificate.environments,
            certificate.created, certificate.expires, certificate.revoked,
        ])
        try TrustTables.bumpClaims(database)
    }

    private static func write(_ device: SharedDevice, _ database: Database) throws {
        let sql = """
            INSERT INTO device (
                id, name, created, revoked, invitation, labels, labels_revision, kept, kept_revision, seen, announcement
            ) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)
            ON CONFLICT (id) DO UPDATE
            SET name = ?2, created = ?3, revoked = ?4, invitation = ?5, labels = ?6, labels_revision = ?7,
                kept = ?8, kept_revision = ?9, seen = ?10, announcement = ?11
            RETURNING number
            """
        let statement = try database.cachedStatement(sql: sql)
        let arguments: StatementArguments = [
            device.id, device.name, device.created, device.revoked, device.invitation, device.labels,
            device.labelsRevision, device.kept, device.keptRevision, device.seen, device.announcement,
        ]
        let number = try CheckedRow.valid(try Int64.fetchOne(statement, arguments: arguments))
        try database.cachedStatement(sql: "DELETE FROM device_certificate WHERE device = ?")
            .execute(arguments: [number])
        for (position, certificate) in device.certificates.enumerated() {
            try database.cachedStatement(sql: "INSERT INTO device_certificate VALUES (?, ?, ?, ?)")
                .execute(arguments: [number, position, certificate.serial, certificate.expires])
        }
    }

    private static func write(_ invitation: SharedInvitation, _ database: Database) throws {
        let sql = """
            INSERT INTO invitation (
                id, name, lookup, digest, created, expires, uses, taken, recent, withdrawn, device, labels
            ) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)
            ON CONFLICT (id) DO UPDATE SET taken = ?8, recent = ?9, withdrawn = ?10
            """
        try database.cachedStatement(sql: sql).execute(arguments: [
            invitation.id, invitation.name, Invitation.lookupKey(Array(invitation.digest)), invitation.digest,
            invitation.created, invitation.expires, invitation.uses, invitation.taken,
            TrustTables.recent(invitation.recent.lazy.map { ($0.device, $0.at) }), invitation.withdrawn,
            invitation.device, invitation.labels,
        ])
    }

    private static func write(_ topic: SharedTopic, _ database: Database) throws {
        if let owner = topic.owner {
            let sql = """
                INSERT INTO topic_claim VALUES (?1, ?2, ?3, ?4)
                ON CONFLICT (topic) DO UPDATE SET team = ?2, origin = ?3, since = ?4
                """
            try database.cachedStatement(sql: sql)
                .execute(arguments: [topic.topic, owner.team, owner.origin.rawValue, owner.since])
        } else {
            try database.execute(sql: "DELETE FROM topic_claim WHERE topic = ?", arguments: [topic.topic])
        }
        try database.execute(
            sql: "INSERT OR REPLACE INTO topic_revision VALUES (?, ?)",
            arguments: [topic.topic, topic.revision]
        )
        try TrustTables.bumpClaims(database)
    }
}
