/// A host and a port: `push.example.com:2197`, `127.0.0.1:2197`, `[::1]:2197`.
struct HostPort: Hashable, Sendable {
    let host: String
    let port: Int

    init(host: String, port: Int) {
        self.host = host
        self.port = port
    }

    /// Reads a host and a port; nil for other texts, or without a port and a default.
    init?(_ text: String, defaultPort: Int? = nil) {
        let host: Substring
        let rest: Substring
        if text.hasPrefix("[") {
            guard let end = text.firstIndex(of: "]") else { return nil }
            host = text[text.index(after: text.startIndex)..<end]
            rest = text[text.index(after: end)...]
            guard host.contains(":") else { return nil }
        } else {
            host = text.prefix { $0 != ":" }
            rest = text.dropFirst(host.count)
        }
        guard !host.isEmpty, !host.contains(where: { $0.isWhitespace || $0 == "/" }) else { return nil }
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
}

extension HostPort: CustomStringConvertible {
    var description: String {
        host.contains(":") ? "[\(host)]:\(port)" : "\(host):\(port)"
    }
}
