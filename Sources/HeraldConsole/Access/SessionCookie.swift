import HTTPTypes
import Hummingbird

/// The cookie of a session.
enum SessionCookie {
    /// Under TLS, where the browser then takes it from this host only.
    static let secureName = "__Host-herald"
    static let name = "herald"

    /// The secrets in a request; several if a path or a neighbour set a cookie of this name too.
    ///
    /// Over TLS only the name counts that no neighbour can set.
    static func secrets(in request: Request, isOverTLS: Bool) -> [String] {
        let pairs = request.headers[values: .cookie].joined(separator: ";").split(separator: ";").prefix(64)
        let cookies = pairs.map { $0.drop { $0 == " " } }
        return (isOverTLS ? [secureName] : [secureName, name]).flatMap { name in
            cookies.filter { $0.hasPrefix(name + "=") }.map { String($0.dropFirst(name.utf8.count + 1)) }
        }
    }

    /// Whether a script of our page made a request: pages of other sites cannot send this field.
    static func isFromPage(_ request: Request) -> Bool {
        HTTPField.Name("herald-console").flatMap { request.headers[$0] } == "1"
    }

    /// Whether a page that was loaded over TLS through a proxy made a request.
    static func isBehindTLS(_ request: Request) -> Bool {
        request.headers[.origin]?.lowercased().hasPrefix("https://") == true
    }

    /// The field that sets the cookie; an empty secret removes it.
    static func field(_ secret: String, isSecure: Bool) -> String {
        let age = secret.isEmpty ? 0 : SessionTable.longestLife.components.seconds
        let attributes = "HttpOnly; SameSite=Strict; Path=/; Max-Age=\(age)"
        return isSecure ? "\(secureName)=\(secret); Secure; \(attributes)" : "\(name)=\(secret); \(attributes)"
    }
}
