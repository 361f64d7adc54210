import HTTPTypes

/// The least role of each request below `/v1`.
///
/// A request that is not here needs an admin. `openapi.yaml` shows the roles as `x-role`.
enum RoleTable {
    /// A row of the table.
    struct Rule: Hashable, Sendable {
        let method: HTTPRequest.Method
        /// The path as in `openapi.yaml`: `/v1/drills/{id}/stop`.
        let path: String
        /// nil: anybody may make this request.
        var role: ConsoleRole?
        /// Whether it changes the service: refused in a read-only console, and written to the audit.
        let isChange: Bool
        /// Whether its answer has payloads: the first of each caller is written to the audit.
        var opensPayloads = false
        /// Whether it starts or stops drills, for which operators choose the role.
        var isDrill = false
    }

    /// The row of a request; `drills` is the least role that starts and stops drills.
    static func rule(_ method: HTTPRequest.Method, _ path: String, drills: ConsoleRole = .admin) -> Rule {
        var rule =
            byRequest["\(method.rawValue) \(path)"]
            ?? Rule(method: method, path: path, role: .admin, isChange: method != .get)
        if rule.isDrill { rule.role = drills }
        return rule
    }

    static let rules: [Rule] =
        [
            anybody(.post, "/v1/session"),
            reads("/v1/session"),
            Rule(method: .delete, path: "/v1/session", role: .viewer, isChange: true),
        ]
        // Readings of a viewer.
        + [
            "status", "journal", "journal/{id}", "events", "series", "tallies", "problems", "refusals", "credentials",
            "credentials/{id}", "devices", "devices/{id}", "apps", "channels", "drills", "clock",
        ].map { reads("/v1/\($0)") }
        + [asks("/v1/journal/search", .viewer)]
        + ["registration", "token-keys"].map { asks("/v1/control/\($0)", .admin) }
        // Requests of a sender.
        + ["check", "preview", "token", "jwt", "certificate", "frame"].map { asks("/v1/tools/\($0)", .sender) }
        + ["caught", "caught/{id}"].map {
            Rule(method: .get, path: "/v1/\($0)", role: .sender, isChange: false, opensPayloads: true)
        }
        + [
            Rule(method: .post, path: "/v1/send", role: .sender, isChange: true),
            Rule(method: .post, path: "/v1/channels", role: .sender, isChange: true),
            Rule(method: .delete, path: "/v1/channels/{id}", role: .sender, isChange: true),
            Rule(method: .delete, path: "/v1/caught", role: .sender, isChange: true),
            Rule(method: .post, path: "/v1/devices/{id}/apps/{topic}/token", role: .sender, isChange: true),
        ]
        + ["drills", "drills/stop", "drills/{id}/stop", "drills/{id}/renew"].map {
            Rule(method: .post, path: "/v1/\($0)", role: .admin, isChange: true, isDrill: true)
        }

    private static let byRequest = Dictionary(
        rules.map { ("\($0.method.rawValue) \($0.path)", $0) },
        uniquingKeysWith: { first, _ in first }
    )

    private static func anybody(_ method: HTTPRequest.Method, _ path: String) -> Rule {
        Rule(method: method, path: path, role: nil, isChange: true)
    }

    private static func reads(_ path: String) -> Rule {
        Rule(method: .get, path: path, role: .viewer, isChange: false)
    }

    /// A question in a body, so that no token is in an address.
    private static func asks(_ path: String, _ role: ConsoleRole) -> Rule {
        Rule(method: .post, path: path, role: role, isChange: false)
    }
}
