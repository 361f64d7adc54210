import HeraldModel
import HeraldWeb
import Hummingbird

/// The parts of the console for people who test their pushes.
package struct ConsoleTesting: Sendable {
    let inbox: any CaughtInbox
    private let sends: SendRoutes
    private let tools: ToolRoutes

    package init(inbox: any CaughtInbox, sender: any ConsoleSender, tools: any ConsoleTools) {
        self.inbox = inbox
        sends = SendRoutes(sender: sender)
        self.tools = ToolRoutes(tools: tools)
    }

    func add(to group: RouterGroup<ConsoleContext>, connections: Int) {
        CaughtRoutes(inbox: inbox, connections: connections).add(to: group)
        sends.add(to: group)
        tools.add(to: group)
    }

    /// The present state of catching in words, for the health of the service.
    var notes: [String] {
        let state = inbox.catching
        let what: String
        switch state.topics {
        case .off: return []
        case .all: what = "all apps"
        case .only(let topics): what = topics.map(\.name).joined(separator: ", ")
        }
        let until = state.until.map { "until \($0)" } ?? "until it stops"
        return ["payloads of \(what) are caught in memory \(until): not for production"]
    }
}
