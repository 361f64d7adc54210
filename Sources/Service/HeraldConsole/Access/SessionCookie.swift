import HTTPTypes
import Hummingbird

/// The cookie of a session.
enum SessionCookie {
    /// The name of the cookie.
    ///
    /// Browsers share cookies between the ports of a host. So the name has the port that the browser sees, and two consoles on
    /// one host do not replace each other's. Under TLS the prefix lets the browser take it from this host only.
    static func name(in request: Request, isSecure: Bool) -> String {
        let port = request.head.authority?.split(separator: ":").last.flatMap { UInt16($0) }
        return (isSecure ? "__Host-herald" : "herald") + (port.map { "-\($0)" } ?? "")
    }

    /// The secrets in a request; several if a path or a neighbour set a cookie of this name too.
    ///
    /// Over TLS only the name counts that no neighbour can set.
    static func secrets(in request: Request, isOverTLS: Bool) -> [String] {
        let pairs = request.headers[values: .cookie].joined(separator: ";").split(separator: ";").prefix(64)
        let cookies = pairs.map { $0.drop { $0 == " " } }
        return (isOverTLS ? [true] : [true, false]).flatMap { isSecure in
            let start = name(in: request, isSecure: isSecure) + "="
            return cookies.filter { $0.hasPrefix(start) }.map { String($0.dropFirst(start.utf8.count)) }
        }
    }

    /// The secret that the page keeps in its origin; empty if a request has none.
    static func pageSecret(in request: Request) -> String {
        HTTPField.Name("herald-console").flatMap { request.headers[$0] } ?? ""
    }

    /// Whether a page that was loaded over TLS through a proxy made a request.
    static func isBehindTLS(_ request: Request) -> Bool {
        request.headers[.origin]?.lowercased().hasPrefix("https://") == true
    }

    /// The field that sets the cookie; an empty secret removes it.
    static func field(_ secret: String, for request: Request, isSecure: Bool) -> String {
        let age = secret.isEmpty ? 0 : SessionTable.longestLife.components.seconds
        let attributes = "HttpOnly; SameSite=Strict; Path=/; Max-Age=\(age)"
        return "\(name(in: request, isSecure: isSecure))=\(secret); \(isSecure ? "Secure; " : "")\(attributes)"
    }
}
