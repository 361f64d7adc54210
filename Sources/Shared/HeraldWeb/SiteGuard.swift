import HTTPTypes
package import Hummingbird

/// Protects a listener from pages of other sites, which run in the user's browser and can reach loopback ports.
///
/// A request that changes something must be JSON, which forms of other sites cannot send, and come from a page of this
/// listener or from no page. `HostCheck` prevents DNS rebinding.
package struct SiteGuard<Context: RequestContext>: RouterMiddleware {
    private let rule: SiteRule

    /// - Parameter what: The listener's service in refusals: `the device`.
    package init(protecting what: String) {
        rule = SiteRule(protecting: what)
    }

    package func handle(
        _ request: Request,
        context: Context,
        next: (Request, Context) async throws -> Response
    ) async throws -> Response {
        if request.method != .get, request.method != .head {
            try rule.refuseForeign(request)
            try rule.requireJSON(request)
        }
        return try await next(request, context)
    }
}

/// Recognizes requests of other sites.
package struct SiteRule: Sendable {
    private let what: String
    private let isOverTLS: Bool

    /// - Parameters:
    ///   - what: The listener's service in refusals: `the device`.
    ///   - isOverTLS: Whether the listener itself speaks TLS, so that no page of its own has an origin with `http`.
    package init(protecting what: String, isOverTLS: Bool = false) {
        self.what = what
        self.isOverTLS = isOverTLS
    }

    /// Refuses a request of another site's page with 403.
    ///
    /// An origin with `https` is ours too: a proxy may speak TLS for this listener.
    package func refuseForeign(_ request: Request) throws {
        guard let isOurs = comesFromOurPage(request), !isOurs else { return }
        throw WebRefusal(
            403,
            "a page of another site may not use \(what); behind a proxy, let it pass on the field `host` unchanged"
        )
    }

    /// Whether a page of this listener made a request; nil if no page did, or the browser does not say.
    package func comesFromOurPage(_ request: Request) -> Bool? {
        if let origin = request.headers[.origin]?.lowercased() {
            let authority = request.head.authority?.lowercased() ?? ""
            return origin == "https://" + authority || (!isOverTLS && origin == "http://" + authority)
        }
        guard let site = HTTPField.Name("sec-fetch-site").flatMap({ request.headers[$0] })?.lowercased() else {
            return nil
        }
        // `none`: the user typed the address.
        return site == "none" ? nil : site == "same-origin"
    }

    /// Refuses a body that is not declared as JSON with 415.
    package func requireJSON(_ request: Request) throws {
        let type = request.headers[.contentType]?.prefix { $0 != ";" }.lowercased()
        guard type?.filter({ $0 != " " }) == "application/json" else {
            throw WebRefusal(415, "send the request with content-type: application/json")
        }
    }
}
