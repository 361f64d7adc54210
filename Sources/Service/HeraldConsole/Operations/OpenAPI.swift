import HTTPTypes
import HeraldJSON
import HeraldModel
import HeraldWeb

/// The description of the console's requests: OpenAPI 3.1, made from the rows.
package enum OpenAPI {
    /// The description as YAML.
    /// - Throws: A fault of a type, for its author.
    package static func yaml(of rows: [OperationRow]) throws -> String {
        var text = ""
        write(try description(of: rows), indent: 0, to: &text)
        return text
    }

    static func description(of rows: [OperationRow]) throws -> JSON {
        let book = SchemaBook()
        var paths = openPaths(health: try book.schema(of: HealthReport.self))
        for row in rows where !row.isForSocket {
            var methods = paths[row.path]?.members ?? [:]
            methods[row.method.rawValue.lowercased()] = try description(of: row, book)
            paths[row.path] = .object(methods)
        }
        let failure =
            ["description": "The error and its remedy.", "content": content(try book.schema(of: WebFailure.self))]
            as JSON
        return [
            "openapi": "3.1.0",
            "info": [
                "title": "Herald's console", "version": .string(Version.number), "description": .string(introduction),
            ],
            "servers": [["url": "http://127.0.0.1:2190"]],
            "security": [["token": []], ["session": []]],
            "paths": .object(paths),
            "components": [
                "securitySchemes": securitySchemes, "responses": ["Failure": failure],
                "schemas": .object(book.components),
            ],
        ]
    }

    private static func description(of row: OperationRow, _ book: SchemaBook) throws -> JSON {
        let words = row.path.split(separator: "/").dropFirst()
        // The area of the request: its first word.
        var operation: JSON.Object = ["tags": [.string(String(words.first ?? ""))]]
        operation["operationId"] = .string(id(of: row))
        let role = row.role.role(drills: .admin)
        operation["x-role"] = .string(role?.rawValue ?? "none")
        operation["summary"] = .string(row.summary)
        if !row.more.isEmpty { operation["description"] = .string(row.more) }
        if role == nil { operation["security"] = [] }
        let parameters = parameters(of: row)
        if !parameters.isEmpty { operation["parameters"] = .array(parameters) }
        let body = try row.bodySchema(book)
        if let body { operation["requestBody"] = ["required": true, "content": content(body)] }
        var response: JSON.Object = ["description": .string(row.answer.isEmpty ? row.summary : row.answer)]
        if let answer = try row.answerSchema(book) { response["content"] = content(answer.schema, answer.type) }
        var responses: JSON.Object = ["\(row.status)": .object(response)]
        var failures = Set(row.failures + [400, 421, 429, 500, 503])
        if role != nil || body != nil { failures.formUnion([401, 403]) }
        if body != nil { failures.insert(413) }
        for status in failures.sorted() { responses["\(status)"] = ["$ref": "#/components/responses/Failure"] }
        operation["responses"] = .object(responses)
        return .object(operation)
    }

    /// `postDevicesIdRevoke`.
    private static func id(of row: OperationRow) -> String {
        row.path.split(whereSeparator: { !$0.isLetter }).dropFirst().reduce(row.method.rawValue.lowercased()) {
            $0 + $1.prefix(1).uppercased() + $1.dropFirst()
        }
    }

    private static func parameters(of row: OperationRow) -> [JSON] {
        let holes = row.path.split(separator: "/").filter { $0.hasPrefix("{") }
        let names = holes.map { String($0.dropFirst().dropLast()) }
        let given = Set(row.parameters.map(\.name))
        var rest: [any AnyParameter] = []
        for name in names where !given.contains(name) {
            if name == Ask.id.name { rest.append(Ask.id) } else { rest.append(Ask.topic(name, "A bundle identifier.")) }
        }
        return (rest + row.parameters).map { (parameter: any AnyParameter) -> JSON in
            let place = row.place(of: parameter)
            var members: JSON.Object = ["name": .string(parameter.name), "in": .string(place)]
            if place == "path" { members["required"] = true }
            members["description"] = .string(parameter.words)
            members["schema"] = parameter.schema
            return .object(members)
        }
    }

    private static func content(_ schema: JSON, _ type: String = "application/json") -> JSON {
        var content: JSON.Object = [:]
        content[type] = ["schema": schema]
        return .object(content)
    }

    /// The paths that anybody may read.
    private static func openPaths(health: JSON) -> JSON.Object {
        let text: JSON = ["type": "string"]
        let live: JSON = ["type": "object", "required": ["status"], "properties": ["status": ["const": "live"]]]
        let rows: [(path: String, summary: String, type: String, schema: JSON)] = [
            (
                "/", "The page of the console. Its other paths, like `/notifications`, answer the same.", "text/html",
                text
            ),
            ("/openapi.yaml", "This description.", "application/yaml", text),
            ("/health", "Whether the service is ready.", "application/json", health),
            ("/health/ready", "Whether the service is ready; the same as `/health`.", "application/json", health),
            ("/health/live", "Whether the process runs.", "application/json", live),
            ("/metrics", "All metrics for Prometheus. No label has a device, a token or a topic.", "text/plain", text),
        ]
        var paths: JSON.Object = [:]
        for row in rows {
            var responses: JSON.Object = [
                "200": ["description": .string(row.summary), "content": content(row.schema, row.type)]
            ]
            if row.schema == health {
                responses["503"] = ["description": "Not ready.", "content": content(health)]
            }
            responses["421"] = ["$ref": "#/components/responses/Failure"]
            paths[row.path] = [
                "get": [
                    "tags": ["health"], "summary": .string(row.summary), "security": [],
                    "responses": .object(responses),
                ]
            ]
        }
        return paths
    }

    private static let introduction = """
        Requests to the console: health, metrics, and the admin API under `/v1`. The console listens on port 2190 of the \
        loopback address by default; on other addresses it speaks HTTPS. The Unix socket `run/control.sock` of the data \
        folder takes the same requests without a token; the file system limits access to it.

        Times are strings in UTC with milliseconds. An absent member is unknown. A path that exists answers 405 to a method \
        that it does not take, with the field `allow`. The port answers 421 to a field `host` with a foreign name, which the \
        socket does not look at. `x-role` is the least role of a request; each role has the rights of those before it: viewer, \
        sender, admin.
        """

    private static let securitySchemes: JSON = [
        "token": [
            "type": "http", "scheme": "bearer",
            "description":
                "The content of `run/admin.token` in the data folder, new at each start, or a token of `POST /v1/tokens`.",
        ],
        "session": [
            "type": "apiKey", "in": "cookie", "name": "herald-2190",
            "description": """
            The cookie of `POST /v1/session`: `herald-` and the port of the page's address, `__Host-herald-…` behind TLS. It \
            counts only with `page_secret` of that answer in the field `herald-console`. A change must come from the page's \
            own origin.
            """,
        ],
    ]

    // MARK: - YAML

    /// Writes a value behind its key or dash.
    ///
    /// Every text is in quotation marks, which is JSON, and so YAML too.
    private static func write(_ value: JSON, indent: Int, to text: inout String) {
        let margin = String(repeating: " ", count: indent)
        switch value {
        case .object(let members) where !members.isEmpty:
            for (name, value) in members {
                text += margin + (isPlain(name) ? name : quoted(.string(name))) + ":"
                writeBelow(value, indent: indent, to: &text)
            }
        case .array(let elements) where elements.contains { $0.members?.isEmpty == false }:
            for element in elements {
                text += margin + "-"
                writeBelow(element, indent: indent, to: &text)
            }
        default: text += margin + quoted(value) + "\n"
        }
    }

    private static func writeBelow(_ value: JSON, indent: Int, to text: inout String) {
        let isBlock =
            value.members?.isEmpty == false || value.elements?.contains { $0.members?.isEmpty == false } == true
        guard isBlock else {
            text += " " + quoted(value) + "\n"
            return
        }
        text += "\n"
        write(value, indent: indent + 2, to: &text)
    }

    private static func isPlain(_ name: String) -> Bool {
        guard let first = name.unicodeScalars.first, first == "/" || first == "$" || first.properties.isAlphabetic
        else {
            return false
        }
        return name.unicodeScalars.allSatisfy {
            $0.properties.isAlphabetic || "/$_-{}.0123456789".unicodeScalars.contains($0)
        }
            && !["true", "false", "null", "yes", "no", "on", "off"].contains(name)
    }

    private static func quoted(_ value: JSON) -> String {
        if let text = value.text, isPlain(text) { return text }
        return String(decoding: value.bytes, as: UTF8.self)
    }
}
