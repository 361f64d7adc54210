import ArgumentParser
import HeraldService

/// `herald agent`: a simulated device.
struct Agent: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Run a simulated device, and control it.",
        discussion: """
            Example:
              HERALD_CODE=… herald agent activate --service https://push.example.com:2191
              herald agent run --identity kitchen.pem --app com.example.chat
            """,
        subcommands: [
            AgentActivate.self, AgentRun.self, AgentShow.self, AgentShown.self, AgentInstall.self, AgentRemove.self,
            AgentAllow.self, AgentSet.self, AgentSchedule.self, AgentPending.self, AgentCancel.self, AgentChannel.self,
            AgentRenew.self,
        ]
    )
}
