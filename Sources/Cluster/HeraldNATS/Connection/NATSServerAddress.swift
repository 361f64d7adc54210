/// Address of one NATS server: `nats://host:port`, `tls://host:port`, or `host:port`.
package struct NATSServerAddress: Hashable, Sendable, CustomStringConvertible {
    package let host: String
    package let port: Int
    /// Whether a connection without TLS is refused (`tls://`).
    package let requiresTLS: Bool

    /// The port of a server whose address names none.
    package static let standardPort = 4222

    package init(host: String, port: Int = Self.standardPort, requiresTLS: Bool = false) {
        self.host = host
        self.port = port
        self.requiresTLS = requiresTLS
    }

    /// Reads an address.
    /// - Throws: ``NATSError/Kind/badSetting`` with what is wrong.
    package init(_ text: String) throws(NATSError) {
        func bad(_ why: String) -> NATSError {
            NATSError(.badSetting, "\"\(text)\" is not the address of a NATS server: \(why)")
        }
        var rest = text[...]
        var requiresTLS = false
        if let scheme = text.firstRange(of: "://") {
            switch text[..<scheme.lowerBound].lowercased() {
            case "nats": break
            case "tls": requiresTLS = true
            default: throw bad("write nats://host:4222, or tls://host:4222")
            }
            rest = text[scheme.upperBound...]
        }
        if rest.hasSuffix("/") { rest = rest.dropLast() }
        guard !rest.contains("@") else { throw bad("a credential does not belong in the address") }
        var port = Self.standardPort
        let host: Substring
        func number(_ digits: Substring) throws(NATSError) -> Int {
            guard digits.utf8.allSatisfy({ (48...57).contains($0) }), let number = Int(digits),
                (1...65_535).contains(number)
            else { throw bad("the port is a number from 1 to 65535") }
            return number
        }
        if rest.hasPrefix("[") {
            guard let end = rest.firstIndex(of: "]") else { throw bad("the bracket is not closed") }
            host = rest[rest.index(after: rest.startIndex)..<end]
            guard host.contains(":") else { throw bad("brackets are for an IPv6 address: [::1]:4222") }
            let tail = rest[rest.index(after: end)...]
            if tail.hasPrefix(":") {
                port = try number(tail.dropFirst())
            } else if !tail.isEmpty {
                throw bad("a port follows a colon")
            }
        } else if let colon = rest.lastIndex(of: ":") {
            host = rest[..<colon]
            guard !host.contains(":") else { throw bad("write an IPv6 address in brackets: [::1]:4222") }
            port = try number(rest[rest.index(after: colon)...])
        } else {
            host = rest
        }
        let isPlain = host.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F && !"/?#[]".utf8.contains($0) }
        guard !host.isEmpty, isPlain else { throw bad("the host is missing or is not a host name") }
        self.init(host: String(host), port: port, requiresTLS: requiresTLS)
    }

    package var description: String {
        "\(requiresTLS ? "tls" : "nats")://\(host.contains(":") ? "[\(host)]" : host):\(port)"
    }
}
