import Foundation
import HTTPTypes
import HeraldWeb
package import Hummingbird

/// A request of the admin API as its work gets it.
package struct Call<Body: Sendable>: Sendable {
    package let body: Body
    let request: Request
    let context: ConsoleContext
    let row: OperationRow

    /// The maker of the request.
    package var caller: ConsoleCaller? { context.caller }
    /// Facts for the audit's line of the request.
    package var note: AuditNote { context.note }

    /// The value of a parameter in the query; nil if the request lacks it.
    /// - Throws: ``AdminError`` with what to write.
    package func callAsFunction<Value>(_ parameter: Parameter<Value>) throws -> Value? {
        try request.uri.queryParameters[parameter.name[...]].map { try parameter.read(String($0)) }
    }

    /// The values of a parameter that the query may have more than once.
    /// - Throws: ``AdminError`` with what to write.
    package func all<Value>(_ parameter: Parameter<Value>) throws -> [Value] {
        try request.uri.queryParameters.filter { $0.key == parameter.name[...] }.map {
            try parameter.read(String($0.value))
        }
    }

    /// The value of a parameter in the path.
    /// - Throws: ``AdminError`` with what to write.
    package func path<Value>(_ parameter: Parameter<Value>) throws -> Value {
        let text = try context.parameters.require(parameter.name)
        return try parameter.read(text.removingPercentEncoding ?? text)
    }

    /// The part of a list that the request asks for.
    package func page() throws -> PageRequest {
        PageRequest(limit: try self(Ask.limit) ?? PageRequest.standard, after: try self(Ask.after))
    }
}

/// The work of each request of the admin API, by its row.
package struct AdminWork: Sendable {
    /// Rows that nobody has registered work for, or work without a row.
    package struct Incomplete: Error, Hashable, CustomStringConvertible {
        /// `GET /v1/devices`.
        package let names: [String]
        package var description: String {
            "the admin API lacks the work or the row of \(names.joined(separator: ", "))"
        }
    }

    private struct Work: Sendable {
        let row: OperationRow
        let add: @Sendable (inout WebRoutes<ConsoleContext>) -> Void
    }

    private var works: [String: Work] = [:]

    package init() {}

    /// Registers the work of a request, whose answer is JSON.
    package mutating func on<Body, Answer: Encodable>(
        _ operation: AdminOperation<Body, Answer>,
        _ work: @escaping @Sendable (Call<Body>) async throws -> Answer
    ) {
        respond(to: operation) { call in
            let answer = try await work(call)
            let status = HTTPResponse.Status(code: call.row.status)
            return answer is NoContent ? Response(status: status) : try WebReply.json(answer, status: status)
        }
    }

    /// Registers the work of a request, which makes the whole response.
    package mutating func respond<Body, Answer>(
        to operation: AdminOperation<Body, Answer>,
        _ work: @escaping @Sendable (Call<Body>) async throws -> Response
    ) {
        let row = operation.row
        works[row.name] = Work(row: row) { routes in
            let path = String(row.path.dropFirst("/v1/".count))
            if let none = NoContent() as? Body {
                routes.on(row.method, path, takes: row.queryNames) { request, context in
                    try await work(Call(body: none, request: request, context: context, row: row))
                }
            } else {
                routes.on(row.method, path, takes: row.queryNames, as: Body.self) { body, request, context in
                    try await work(Call(body: body, request: request, context: context, row: row))
                }
            }
        }
    }

    /// The registered rows.
    package var rows: [OperationRow] { works.values.map(\.row) }

    /// Checks that each row has its work, and that no work is without its row.
    /// - Throws: ``Incomplete`` with their names.
    func check(_ rows: [OperationRow]) throws(Incomplete) {
        let names = Set(rows.map(\.name)).symmetricDifference(works.keys)
        guard names.isEmpty else { throw Incomplete(names: names.sorted()) }
    }

    /// Adds the routes to the group of `/v1`; with `isSocket`, requests come over the control socket.
    func add(to group: RouterGroup<ConsoleContext>, isSocket: Bool) {
        var routes = WebRoutes(group)
        for (_, work) in works.sorted(by: { $0.key < $1.key }) where isSocket || !work.row.isForSocket {
            work.add(&routes)
        }
        routes.refuseOtherMethods()
    }
}
