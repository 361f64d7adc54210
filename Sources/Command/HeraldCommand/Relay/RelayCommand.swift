import ArgumentParser
import HeraldService

/// `herald relay`: a queue in a database, and the daemon that sends its rows.
struct RelayCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "relay",
        abstract: "Send the notifications that other programs put into a database table.",
        discussion: """
            The relay sends each row of the table push_queue (device_token, topic, payload) and writes the result into it.

            Example:
              herald relay run --database sqlite:///var/lib/chat/queue.db \\
                --topic com.example.chat --certificate provider.pem \\
                --service localhost:2197 --ca herald-data/ca.pem
              sqlite3 /var/lib/chat/queue.db \\
                "INSERT INTO push_queue (device_token, topic, payload) \\
                VALUES ('TOKEN', 'com.example.chat', \\
                '{\\"aps\\":{\\"alert\\":\\"Dinner is ready\\"}}')"
            """,
        subcommands: [
            RelayRun.self, RelayStatus.self, RelayRetry.self, RelayPurge.self, RelayRevive.self,
            RelaySchemaCommand.self,
        ]
    )
}
