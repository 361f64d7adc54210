import HTTPTypes
import HeraldJSON
import HeraldModel
package import Hummingbird

/// The methods that a path may allow.
package enum WebMethods {
    package static let all: [HTTPRequest.Method] = [.get, .post, .put, .patch, .delete]
}

/// Adds routes to a group, and answers other methods of their paths with 405 (RFC 9110 §15.5.6).
///
/// A route takes the parameters and the body that it declares, and refuses all others with 400: a misspelt one would be
/// ignored, and a request would do more than was meant.
package struct WebRoutes<Context: RequestContext> {
    package typealias Handler = @Sendable (Request, Context) async throws -> Response
    package typealias BodyHandler<Body> = @Sendable (Body, Request, Context) async throws -> Response

    private let group: RouterGroup<Context>
    private let maximumBodyBytes: Int
    private var allowed: [String: [HTTPRequest.Method]] = [:]

    package init(_ group: RouterGroup<Context>, maximumBodyBytes: Int = 1 << 16) {
        self.group = group
        self.maximumBodyBytes = maximumBodyBytes
    }

    package mutating func get(_ path: String, _ parameters: [String] = [], _ handler: @escaping Handler) {
        add(.get, path, takes: parameters, handler: handler)
    }

    package mutating func post<Body: Decodable & Sendable>(
        _ path: String,
        _ type: Body.Type,
        _ handler: @escaping BodyHandler<Body>
    ) {
        on(.post, path, takes: [], as: type, handler)
    }

    package mutating func put<Body: Decodable & Sendable>(
        _ path: String,
        _ type: Body.Type,
        _ handler: @escaping BodyHandler<Body>
    ) {
        on(.put, path, takes: [], as: type, handler)
    }

    /// Adds a route; one that changes something takes no body, or an empty object.
    package mutating func on(
        _ method: HTTPRequest.Method,
        _ path: String,
        takes parameters: [String],
        _ handler: @escaping Handler
    ) {
        guard method != .get else { return add(method, path, takes: parameters, handler: handler) }
        add(method, path, takes: parameters) { [maximumBodyBytes] request, context in
            guard let body = try? await WebBody.bytes(of: request, limit: maximumBodyBytes),
                body.isEmpty || JSON.Object(body)?.isEmpty == true
            else {
                throw WebRefusal(400, "this request takes no body: remove it")
            }
            return try await handler(request, context)
        }
    }

    package mutating func on<Body: Decodable & Sendable>(
        _ method: HTTPRequest.Method,
        _ path: String,
        takes parameters: [String],
        as type: Body.Type,
        _ handler: @escaping BodyHandler<Body>
    ) {
        add(method, path, takes: parameters) { [maximumBodyBytes] request, context in
            let body = try WebBody.json(try await WebBody.bytes(of: request, limit: maximumBodyBytes), as: Body.self)
            return try await handler(body, request, context)
        }
    }

    /// Completes the group, after all its routes.
    package func refuseOtherMethods() {
        for (path, allowed) in allowed {
            let names = allowed.map(\.rawValue)
            var refusal = WebRefusal(405, "this path takes \(names.joined(separator: " and ")) only")
            refusal.allow = names
            for method in WebMethods.all where !allowed.contains(method) {
                group.on(RouterPath(path), method: method) { [refusal] _, _ -> Response in throw refusal }
            }
        }
    }

    private mutating func add(
        _ method: HTTPRequest.Method,
        _ path: String,
        takes parameters: [String],
        handler: @escaping Handler
    ) {
        allowed[path, default: []].append(method)
        group.on(RouterPath(path), method: method) { request, context in
            try Self.check(request, parameters)
            return try await handler(request, context)
        }
    }

    /// Refuses a parameter that the route does not have, and one that comes more often than the route names it.
    private static func check(_ request: Request, _ known: [String]) throws {
        var rest = known
        for (name, _) in request.uri.queryParameters {
            let name = String(name.unicodeScalars.prefix(64))
            if let place = rest.firstIndex(of: name) {
                rest.remove(at: place)
            } else if known.contains(name) {
                let most = known.count { $0 == name }
                throw WebRefusal(400, "the parameter \(name) appears more than \(most == 1 ? "once" : "\(most) times")")
            } else {
                let all = known.enumerated().filter { !known.prefix($0.offset).contains($0.element) }.map(\.element)
                let names = all.isEmpty ? "this request has none" : "they are \(all.joined(separator: ", "))"
                throw WebRefusal(400, "unknown parameter `\(name)`: \(LikelyKey.words(name, in: known) ?? names)")
            }
        }
    }
}
