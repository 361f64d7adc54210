import ArgumentParser

/// `herald agent`: a device made of software.
struct Agent: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Be a device: run it, and ask or tell the one that runs.",
        discussion: """
            Example:
              herald agent activate --service https://push.example.com:2191 --code …
              herald agent run --identity kitchen.pem --app com.example.chat
            """,
        subcommands: [
            AgentActivate.self, AgentRun.self, AgentShow.self, AgentSaw.self, AgentInstall.self, AgentRemove.self,
            AgentAllow.self, AgentSet.self, AgentRenew.self,
        ]
    )
}
