import HTTPTypes
package import Hummingbird

/// The methods that a path may allow.
package enum WebMethods {
    package static let all: [HTTPRequest.Method] = [.get, .post, .put, .patch, .delete]
}

/// Adds routes to a group, and answers other methods of their paths with 405 (RFC 9110 §15.5.6).
package struct WebRoutes<Context: RequestContext> {
    package typealias Handler = @Sendable (Request, Context) async throws -> Response

    private let group: RouterGroup<Context>
    private var allowed: [String: [HTTPRequest.Method]] = [:]

    package init(_ group: RouterGroup<Context>) {
        self.group = group
    }

    package mutating func get(_ path: String, _ handler: @escaping Handler) { add(.get, path, handler) }
    package mutating func post(_ path: String, _ handler: @escaping Handler) { add(.post, path, handler) }
    package mutating func put(_ path: String, _ handler: @escaping Handler) { add(.put, path, handler) }
    package mutating func delete(_ path: String, _ handler: @escaping Handler) { add(.delete, path, handler) }

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

    private mutating func add(_ method: HTTPRequest.Method, _ path: String, _ handler: @escaping Handler) {
        allowed[path, default: []].append(method)
        group.on(RouterPath(path), method: method, use: handler)
    }
}
