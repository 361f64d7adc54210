/// The relay's tables.
///
/// The first start creates them; `herald relay schema` prints the statements. Each has no effect on existing tables. They are
/// written without a prefix.
enum RelaySchema {
    /// A `due_at` that no clock reaches, for rows that are never claimed.
    static let never: Int64 = 9_000_000_000_000_000

    /// The trigger that queues a sent row again when another program sets its `time_sent` to NULL.
    private static let resend = "push_queue_resend"

    /// The relay itself clears `time_sent` only together with `status`.
    private static let isUnsent = "OLD.time_sent IS NOT NULL AND NEW.time_sent IS NULL AND NEW.status = 'sent'"

    /// The statements of that trigger; `new` writes a column of the row.
    ///
    /// A row for many tokens is split anew; a part makes its row wait for it again.
    private static func sendAgain(_ queue: String, _ now: String, _ new: (String) -> String) -> [String] {
        [
            "DELETE FROM \(queue) WHERE parent = \(new("id"))",
            """
            UPDATE \(queue) SET status = 'queued', reason = NULL, detail = NULL, time_sent = NULL \
            WHERE id = \(new("parent")) AND parts IS NOT NULL
            """,
            """
            UPDATE \(queue) SET status = 'queued', reason = NULL, detail = NULL, apns_id = NULL, attempts = 0, due_at = 0, owner = NULL, \
            uncertain = 0, parts = NULL, time_queued = \(now) WHERE id = \(new("id"))
            """,
        ]
    }

    /// The statements, one per element.
    static func statements(_ dialect: SQLDialect, _ tables: TableNames) -> [String] {
        (dialect == .sqlite ? sqlite : postgresql).map { tables.renamed($0) }
    }

    /// The statements as a script.
    static func script(_ dialect: SQLDialect, _ tables: TableNames) -> String {
        statements(dialect, tables).map { $0 + ";\n" }.joined(separator: "\n")
    }

    private static let sqlite = [
        """
        CREATE TABLE IF NOT EXISTS push_queue (
            id INTEGER PRIMARY KEY AUTOINCREMENT,
            -- Written by the sender: device_token or user_name, and payload or template; the others are optional.
            device_token TEXT,
            topic TEXT,
            payload TEXT,
            priority INTEGER,
            expiration INTEGER,
            collapse_id TEXT,
            push_type TEXT,
            send_after TEXT,
            give_up_at TEXT,
            environment TEXT,
            service TEXT,
            user_name TEXT,
            template TEXT,
            parameters TEXT,
            time_queued TEXT NOT NULL DEFAULT CURRENT_TIMESTAMP,
            -- Written by the relay.
            status TEXT NOT NULL DEFAULT 'queued'
                CHECK (status IN ('queued', 'sent', 'refused', 'expired', 'failed')),
            reason TEXT,
            detail TEXT,
            apns_id TEXT,
            attempts INTEGER NOT NULL DEFAULT 0,
            time_sent TEXT,
            -- Internal to the relay.
            due_at INTEGER NOT NULL DEFAULT 0,
            owner TEXT,
            uncertain INTEGER NOT NULL DEFAULT 0,
            parent INTEGER,
            parts INTEGER
        )
        """,
        "CREATE INDEX IF NOT EXISTS push_queue_due ON push_queue (due_at, id) WHERE status = 'queued'",
        "CREATE INDEX IF NOT EXISTS push_queue_parent ON push_queue (parent) WHERE parent IS NOT NULL",
        """
        CREATE TRIGGER IF NOT EXISTS push_queue_moved AFTER UPDATE OF send_after ON push_queue
        WHEN NEW.status = 'queued' AND NEW.owner IS NULL AND NEW.parts IS NULL
        BEGIN UPDATE push_queue SET due_at = 0 WHERE id = NEW.id; END
        """,
        """
        CREATE TRIGGER IF NOT EXISTS \(resend) AFTER UPDATE OF time_sent ON push_queue
        WHEN \(isUnsent)
        BEGIN
        \(sendAgain("push_queue", "CURRENT_TIMESTAMP") { "NEW.\($0)" }.joined(separator: ";\n"));
        END
        """,
        "CREATE VIEW IF NOT EXISTS " + outcomes,
        """
        CREATE TABLE IF NOT EXISTS devices (
            device_token TEXT NOT NULL,
            topic TEXT NOT NULL,
            environment TEXT,
            service TEXT,
            user_name TEXT,
            languages TEXT,
            registered_at TEXT DEFAULT (strftime('%Y-%m-%d %H:%M:%f', 'now')),
            dead_at TEXT,
            held_at TEXT,
            evidence TEXT,
            PRIMARY KEY (device_token, topic)
        )
        """,
        "CREATE INDEX IF NOT EXISTS devices_user ON devices (user_name, topic) WHERE user_name IS NOT NULL",
        templates,
        breakers("text"),
    ]

    /// The same for PostgreSQL, whatever the search path of the session that made the change.
    private static let sendAgainAnywhere = sendAgain("TABLE", "now()") { $0 == "id" ? "$1" : "$2" }
        .map { statement in
            let text = statement.replacing("'", with: "''").replacing("TABLE", with: "' || TG_RELID::regclass || '")
            return "EXECUTE '\(text)' USING NEW.id, NEW.parent;"
        }
        .joined(separator: "\n")

    private static let postgresql = [
        """
        CREATE TABLE IF NOT EXISTS push_queue (
            id bigint GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY,
            -- Written by the sender: device_token or user_name, and payload or template; the others are optional.
            device_token text,
            topic text,
            payload text,
            priority integer,
            expiration bigint,
            collapse_id text,
            push_type text,
            send_after timestamptz,
            give_up_at timestamptz,
            environment text,
            service text,
            user_name text,
            template text,
            parameters text,
            time_queued timestamptz NOT NULL DEFAULT now(),
            -- Written by the relay.
            status text NOT NULL DEFAULT 'queued'
                CHECK (status IN ('queued', 'sent', 'refused', 'expired', 'failed')),
            reason text,
            detail text,
            apns_id text,
            attempts integer NOT NULL DEFAULT 0,
            time_sent timestamptz,
            -- Internal to the relay.
            due_at bigint NOT NULL DEFAULT 0,
            owner text,
            uncertain integer NOT NULL DEFAULT 0,
            parent bigint,
            parts integer
        )
        """,
        "CREATE INDEX IF NOT EXISTS push_queue_due ON push_queue (due_at, id) WHERE status = 'queued'",
        "CREATE INDEX IF NOT EXISTS push_queue_parent ON push_queue (parent) WHERE parent IS NOT NULL",
        """
        CREATE OR REPLACE FUNCTION push_queue_moved() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN NEW.due_at := 0; RETURN NEW; END $$
        """,
        """
        CREATE OR REPLACE TRIGGER push_queue_moved BEFORE UPDATE OF send_after ON push_queue FOR EACH ROW
        WHEN (NEW.status = 'queued' AND NEW.owner IS NULL AND NEW.parts IS NULL)
        EXECUTE FUNCTION push_queue_moved()
        """,
        """
        CREATE OR REPLACE FUNCTION push_queue_notify() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN PERFORM pg_notify('push_queue', ''); RETURN NULL; END $$
        """,
        """
        CREATE OR REPLACE TRIGGER push_queue_notify AFTER INSERT OR UPDATE OF send_after ON push_queue
        FOR EACH STATEMENT EXECUTE FUNCTION push_queue_notify()
        """,
        """
        CREATE OR REPLACE TRIGGER push_queue_again AFTER UPDATE OF status ON push_queue FOR EACH ROW
        WHEN (NEW.status = 'queued' AND OLD.status <> 'queued') EXECUTE FUNCTION push_queue_notify()
        """,
        """
        CREATE OR REPLACE FUNCTION \(resend)() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN
        \(sendAgainAnywhere)
        RETURN NULL;
        END $$
        """,
        """
        CREATE OR REPLACE TRIGGER \(resend) AFTER UPDATE OF time_sent ON push_queue FOR EACH ROW
        WHEN (\(isUnsent)) EXECUTE FUNCTION \(resend)()
        """,
        "CREATE OR REPLACE VIEW " + outcomes,
        """
        CREATE TABLE IF NOT EXISTS devices (
            device_token text NOT NULL,
            topic text NOT NULL,
            environment text,
            service text,
            user_name text,
            languages text,
            registered_at timestamptz DEFAULT now(),
            dead_at timestamptz,
            held_at timestamptz,
            evidence text,
            PRIMARY KEY (device_token, topic)
        )
        """,
        "CREATE INDEX IF NOT EXISTS devices_user ON devices (user_name, topic) WHERE user_name IS NOT NULL",
        templates,
        breakers("timestamptz"),
    ]

    /// Apps whose dead tokens are not marked, because far more of them died than usual.
    private static func breakers(_ moment: String) -> String {
        """
        CREATE TABLE IF NOT EXISTS push_breakers (
            app text NOT NULL PRIMARY KEY,
            topic text NOT NULL,
            dead_tokens integer NOT NULL,
            answers integer NOT NULL,
            since \(moment) NOT NULL
        )
        """
    }

    /// Outcome of each token of each row; for a row with one token, the row itself.
    private static let outcomes = """
        push_outcomes AS
        SELECT coalesce(parent, id) AS push_id, device_token, status, reason, detail, apns_id, attempts, time_sent
        FROM push_queue WHERE parts IS NULL
        """

    /// A payload with placeholders, in each language; the language '' is the default.
    private static let templates = """
        CREATE TABLE IF NOT EXISTS push_templates (
            name text NOT NULL,
            language text NOT NULL DEFAULT '',
            payload text NOT NULL,
            PRIMARY KEY (name, language)
        )
        """
}
