import HTTPTypes
import HeraldModel
package import Hummingbird

/// Refuses requests whose `Host` is not this listener, which prevents DNS rebinding.
///
/// A page of another site can reach loopback ports, and read the answers under a name of its own that it lets resolve to
/// the loopback address.
package struct HostCheck<Context: RequestContext>: RouterMiddleware {
    /// The address that the listener listens on.
    private let host: String
    /// Further allowed names.
    private let names: [String]
    private let refusal: WebRefusal

    /// Checks for a host and further names; `words` has the allowed ones for the refusal.
    package init(host: String, names: [String] = [], answersTo words: String) {
        self.host = host
        self.names = names
        refusal = WebRefusal(421, words)
    }

    package func handle(
        _ request: Request,
        context: Context,
        next: (Request, Context) async throws -> Response
    ) async throws -> Response {
        // A client of HTTP/1.0 without the field, as health checks are, is not a browser.
        if let authority = request.head.authority, !isOurs(authority) { throw refusal }
        return try await next(request, context)
    }

    /// Whether a request's `Host` is this listener.
    func isOurs(_ authority: String) -> Bool {
        guard let wanted = Self.host(in: authority.lowercased()) else { return false }
        if wanted == "localhost" || wanted.hasSuffix(".localhost") { return true }
        // A client does not send the zone of an address.
        if wanted == host.lowercased().prefix(while: { $0 != "%" })
            || names.contains(where: { $0.lowercased() == wanted })
        {
            return true
        }
        guard let address = NumericAddress(wanted) else { return false }
        // An address cannot be rebound as a name can. The system decides which addresses reach the listener.
        return address.isLoopback || NumericAddress(host)?.isAny == true
    }

    /// The host without port and brackets; nil if it is malformed.
    private static func host(in authority: String) -> String? {
        if authority.hasPrefix("[") {
            guard let end = authority.firstIndex(of: "]") else { return nil }
            let rest = authority[authority.index(after: end)...]
            guard rest.isEmpty || isPort(rest) else { return nil }
            return String(authority[authority.index(after: authority.startIndex)..<end])
        }
        guard let colon = authority.firstIndex(of: ":") else { return authority }
        return isPort(authority[colon...]) ? String(authority[..<colon]) : nil
    }

    private static func isPort(_ text: Substring) -> Bool {
        text.first == ":" && text.dropFirst().allSatisfy { $0.isASCII && $0.isNumber }
    }
}
