import HTTPTypes
import Hummingbird

/// Refuses requests for other hosts, and from pages of other sites, which can reach loopback ports in the user's browser.
struct ChatGuard: RouterMiddleware {
    /// The address that the server listens on.
    let host: String
    /// The address that a proxy gives it.
    let site: ChatSite?

    func handle(
        _ request: Request,
        context: BasicRequestContext,
        next: (Request, BasicRequestContext) async throws -> Response
    ) async throws -> Response {
        guard let authority = request.head.authority?.lowercased(), isOurs(authority) else {
            throw ChatRefusal(
                .misdirectedRequest,
                "PushChat answers to localhost, 127.0.0.1, its --host and its --site"
            )
        }
        let own = authority == site?.authority ? nil : "http://" + authority
        if let origin = request.headers[.origin]?.lowercased(), origin != own, origin != site?.origin {
            throw ChatRefusal(.forbidden, "a page of another site may not use PushChat")
        }
        return try await next(request, context)
    }

    private func isOurs(_ authority: String) -> Bool {
        // A proxy forwards the requested name, or uses the server's own.
        if authority == site?.authority { return true }
        return ["localhost", "127.0.0.1", "[::1]", host.lowercased(), "[\(host.lowercased())]"].contains { name in
            guard authority.hasPrefix(name) else { return false }
            let rest = authority.dropFirst(name.count)
            return rest.isEmpty || rest.first == ":" && rest.dropFirst().allSatisfy { $0.isASCII && $0.isNumber }
        }
    }
}

/// The address that a proxy gives the server.
struct ChatSite: Sendable {
    /// The origin, as in browsers: scheme, host and port.
    let origin: String
    /// The host, with its port.
    let authority: String

    /// Reads `https://chat.example.com`, which may end with a slash.
    init?(_ text: String) {
        let text = (text.hasSuffix("/") ? text.dropLast() : text[...]).lowercased()
        guard let scheme = ["https://", "http://"].first(where: { text.hasPrefix($0) }) else { return nil }
        let rest = text.dropFirst(scheme.count)
        let isPlain = rest.utf8.allSatisfy { byte in
            switch byte {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "0")...UInt8(ascii: "9"): true
            default: "-.:[]".utf8.contains(byte)
            }
        }
        guard !rest.isEmpty, isPlain else { return nil }
        origin = text
        authority = String(rest)
    }
}
