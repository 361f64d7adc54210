import Foundation
package import HTTPTypes
package import HeraldJSON

/// The requests of the admin API, one row each.
///
/// A row is all that a request needs but its work, which the service registers with ``AdminWork``. From the row follow
/// its route, the least role, read-only mode, the audit, the client of the control socket and the description in OpenAPI.
package enum AdminAPI {}

/// A request of the admin API: the types of its body and of its answer, and its row.
package struct AdminOperation<Body: Decodable & Sendable, Answer: Sendable>: Sendable {
    package let row: OperationRow

    /// - Parameters:
    ///   - method: The method.
    ///   - path: The path below `/v1/`, with names in braces: `devices/{id}`.
    ///   - parameters: Those of the query, and those of the path that have words or a form of their own.
    ///   - role: The least role.
    ///   - effect: What it does to the service; without one, GET reads and every other method changes it.
    ///   - summary: One sentence for the description.
    ///   - answer: The answer in words.
    ///   - more: Further sentences for the description.
    ///   - status: The status of its success.
    ///   - fails: The statuses of its failures, besides those that every such request has.
    package init(
        _ method: HTTPRequest.Method,
        _ path: String,
        takes parameters: [any AnyParameter] = [],
        role: LeastRole,
        _ effect: OperationRow.Effect? = nil,
        says summary: String,
        answer: String = "",
        more: String = "",
        status: Int = 200,
        fails: [Int] = []
    ) where Answer: Decodable {
        self.init(
            method,
            path,
            takes: parameters,
            role: role,
            effect,
            says: summary,
            answer: answer,
            more: more,
            status: status,
            fails: fails
        ) { book in
            Answer.self == NoContent.self ? nil : ("application/json", try book.schema(of: Answer.self))
        }
    }

    /// Makes a row whose answer has a schema of its own.
    package init(
        _ method: HTTPRequest.Method,
        _ path: String,
        takes parameters: [any AnyParameter] = [],
        role: LeastRole,
        _ effect: OperationRow.Effect? = nil,
        says summary: String,
        answer: String = "",
        more: String = "",
        status: Int = 200,
        fails: [Int] = [],
        schema: @escaping @Sendable (SchemaBook) throws -> (type: String, schema: JSON)?
    ) {
        row = OperationRow(
            method: method,
            path: "/v1/\(path)",
            parameters: parameters,
            role: role,
            effect: effect ?? (method == .get ? .reads : .changes),
            summary: summary,
            more: more,
            answer: answer,
            status: status,
            failures: fails,
            bodySchema: { Body.self == NoContent.self ? nil : try $0.schema(of: Body.self) },
            answerSchema: schema
        )
    }
}

/// No body: of a request that takes none, or an answer without one.
package struct NoContent: Codable, Hashable, Sendable {
    package init() {}
}

/// The least role of a request.
package enum LeastRole: Hashable, Sendable {
    /// Anybody may make the request.
    case none
    case viewer, sender, admin
    /// The role that the operator chose for starting and stopping drills.
    case drills

    /// The role; nil for anybody.
    func role(drills: ConsoleRole) -> ConsoleRole? {
        switch self {
        case .none: nil
        case .viewer: .viewer
        case .sender: .sender
        case .admin: .admin
        case .drills: drills
        }
    }
}

/// A request of the admin API without its types.
package struct OperationRow: Sendable {
    /// The effect of a request on the service.
    package enum Effect: Hashable, Sendable {
        case reads
        /// Reads payloads: the first look of each caller is written to the audit.
        case readsPayloads
        /// Changes the service: refused in a read-only console, and written to the audit.
        case changes
        /// Begins or ends the caller's own session: as ``changes``, but a read-only console takes it.
        case signsIn
    }

    package let method: HTTPRequest.Method
    /// `/v1/drills/{id}/stop`.
    package let path: String
    let parameters: [any AnyParameter]
    let role: LeastRole
    let effect: Effect
    let summary: String
    let more: String
    let answer: String
    let status: Int
    let failures: [Int]
    let bodySchema: @Sendable (SchemaBook) throws -> JSON?
    let answerSchema: @Sendable (SchemaBook) throws -> (type: String, schema: JSON)?

    /// `POST /v1/drills/{id}/stop`.
    package var name: String { "\(method.rawValue) \(path)" }

    /// Whether only the control socket has it.
    var isForSocket: Bool { path.hasPrefix("/v1/control/") }

    var isChange: Bool { effect == .changes || effect == .signsIn }

    /// Names of the parameters in the query, each as often as it may be there.
    var queryNames: [String] {
        parameters.filter { place(of: $0) == "query" }.flatMap { Array(repeating: $0.name, count: $0.most) }
    }

    /// `path`, `query` or `header`.
    func place(of parameter: any AnyParameter) -> String {
        if parameter.isHeader { return "header" }
        return path.contains("{\(parameter.name)}") ? "path" : "query"
    }

    /// The row of a request that is in no table: only an admin gets to its refusal.
    static func unknown(_ method: HTTPRequest.Method, _ path: String) -> OperationRow {
        AdminOperation<NoContent, NoContent>(
            method,
            String(path.dropFirst("/v1/".count)),
            role: .admin,
            says: ""
        ).row
    }

    /// The path and the query of a request with arguments.
    package func uri(_ arguments: [ParameterValue]) -> String {
        var (path, query) = (path, [String]())
        for argument in arguments {
            let text = argument.escaped
            let hole = "{\(argument.name)}"
            if let range = path.range(of: hole) {
                path.replaceSubrange(range, with: text)
            } else {
                query.append("\(argument.name)=\(text)")
            }
        }
        return query.isEmpty ? path : "\(path)?\(query.joined(separator: "&"))"
    }
}
