/// A host and a port: `push.example.com:2197`, `127.0.0.1:2197`, `[::1]:2197` (RFC 3986 §3.2.2).
package struct HostPort: Hashable, Sendable {
    /// A name, or an address without brackets; one of version 6 may have a zone: `fe80::1%eth0`.
    package let host: String
    package let port: Int

    package init(host: String, port: Int) {
        self.host = host
        self.port = port
    }

    /// Reads a host and a port; nil for other texts, or without a port and a default.
    package init?(_ text: String, defaultPort: Int? = nil) {
        let host: Substring
        let rest: Substring
        if text.hasPrefix("[") {
            guard let end = text.firstIndex(of: "]") else { return nil }
            host = text[text.index(after: text.startIndex)..<end]
            rest = text[text.index(after: end)...]
            guard host.contains(":"), NumericAddress(String(host)) != nil else { return nil }
        } else {
            host = text.prefix { $0 != ":" }
            rest = text.dropFirst(host.count)
        }
        guard !host.isEmpty, !host.contains(where: { $0.isWhitespace || "/@[]?#".contains($0) }) else { return nil }
        let port: Int?
        if rest.isEmpty {
            port = defaultPort
        } else {
            guard rest.hasPrefix(":"), rest.dropFirst().allSatisfy({ $0.isASCII && $0.isNumber }) else { return nil }
            port = Int(rest.dropFirst())
        }
        guard let port, (1...65_535).contains(port) else { return nil }
        self.init(host: String(host), port: port)
    }

    /// An address of version 6 without the brackets of a URL; other texts as they are.
    package static func unbracketed(_ text: String) -> String {
        text.hasSuffix("]") ? HostPort(text, defaultPort: 1)?.host ?? text : text
    }

    /// An example to write instead of a text that is not a host and a port.
    package static func example(insteadOf text: String, port: Int) -> String {
        text.contains("::") || text.count { $0 == ":" } > 1 ? "[::1]:\(port), with brackets" : "localhost:\(port)"
    }

    /// The host as it stands in a URL: an address of version 6 in brackets.
    package var bracketedHost: String { host.contains(":") ? "[\(host)]" : host }

    /// The host and port as HTTP's field `host` has them: without the port if it is the scheme's own, and without the zone,
    /// which means nothing to others (RFC 6874 §1).
    package func authority(schemePort: Int) -> String {
        let plain = HostPort(host: String(host.prefix { $0 != "%" }), port: port)
        return port == schemePort ? plain.bracketedHost : plain.description
    }
}

extension HostPort: CustomStringConvertible {
    package var description: String { "\(bracketedHost):\(port)" }
}
