import Foundation
import HeraldModel

/// The address of a service's activation listener: `https://push.example.com:2191`.
public struct ServiceAddress: Hashable, Sendable {
    /// The listener's usual port.
    public static let defaultPort = 2191

    /// A host name, or an IP address without brackets.
    public let host: String
    /// From 1 to 65,535.
    public let port: Int

    /// Creates an address.
    public init(host: String, port: Int = defaultPort) {
        self.host = host
        self.port = port
    }

    /// Reads an address, with or without `https://` and port.
    /// - Throws: ``EnrollmentError/Code/badAddress``.
    public init(_ text: String) throws {
        let whole = text.contains("://") ? text : "https://" + text
        guard let parts = URLComponents(string: whole), parts.scheme?.lowercased() == "https", parts.user == nil,
            parts.query == nil, parts.fragment == nil, parts.path.isEmpty || parts.path == "/",
            let host = parts.host?.trimmingCharacters(in: CharacterSet(charactersIn: "[]")), !host.isEmpty,
            (1...65_535).contains(parts.port ?? Self.defaultPort)
        else {
            throw EnrollmentError(
                .badAddress,
                "the service's address must be like https://push.example.com:\(Self.defaultPort)"
            )
        }
        self.init(host: host, port: parts.port ?? Self.defaultPort)
    }
}

extension ServiceAddress: CustomStringConvertible {
    /// The address as a URL, without a path.
    public var description: String {
        "https://\(HostPort(host: host, port: port))"
    }
}
