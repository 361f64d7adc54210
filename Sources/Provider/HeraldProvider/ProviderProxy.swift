import Foundation
import HeraldModel

/// The HTTP proxy through which a client reaches the service; a credential in it is never shown.
///
/// The proxy makes a tunnel (`CONNECT`, RFC 9110 §9.3.6), and TLS runs from end to end in it.
public struct ProviderProxy: Hashable, Sendable {
    enum Kind: Hashable, Sendable {
        case environment
        case direct
        case tunnel(Tunnel)
    }

    /// The address of a proxy, and the value of the field `proxy-authorization`.
    struct Tunnel: Hashable, Sendable {
        let proxy: HostPort
        let authorization: String?
    }

    let kind: Kind

    /// The proxy that the environment names, if it names one; the default.
    ///
    /// It is the value of `https_proxy`, or of `HTTPS_PROXY`. The service's host is reached without it if the host is on this
    /// machine, or if `no_proxy` or `NO_PROXY` has it. That is a list, separated by commas, of names (which stand for the
    /// names below them too), addresses, and networks like `10.0.0.0/8`; or `*` alone, for every host. As in curl, an entry
    /// has no port, no brackets and no other `*`: such a one matches nothing.
    public static let environment = ProviderProxy(kind: .environment)

    /// No proxy, whatever the environment names.
    public static let direct = ProviderProxy(kind: .direct)

    private init(kind: Kind) {
        self.kind = kind
    }

    /// Reads the address of a proxy: `http://proxy.example.com:3128`, or `http://user:password@proxy.example.com:3128` with
    /// special characters as `%` and two hexadecimal digits.
    ///
    /// `none`, in either case, is ``direct``. Without a port it is 80.
    /// - Throws: ``ProviderError/Code/badProxy``, without the text.
    public init(_ text: String) throws {
        if text.lowercased() == "none" {
            self = .direct
            return
        }
        let whole = text.contains("://") ? text : "http://" + text
        guard whole.lowercased().hasPrefix("http://") else {
            throw ProviderProxy.bad("its address begins with http://, and Herald speaks to proxies of this kind only")
        }
        let parts = URLComponents(string: whole, encodingInvalidCharacters: false)
        guard let parts, let host = parts.host?.trimmingCharacters(in: ["[", "]"]), !host.isEmpty,
            parts.path.isEmpty || parts.path == "/", parts.query == nil, parts.fragment == nil,
            let address = HostPort("\(HostPort(host: host, port: parts.port ?? 80))")
        else {
            throw ProviderProxy.bad(
                "write http://proxy.example.com:3128, or http://user:password@proxy.example.com:3128"
            )
        }
        let credential = parts.user.map { "\($0):\(parts.password ?? "")" }
        guard credential?.utf8.allSatisfy({ $0 >= 0x20 && $0 != 0x7F }) != false else {
            throw ProviderProxy.bad("its user or password has a control character")
        }
        let authorization = credential.map { "Basic " + Data($0.utf8).base64EncodedString() }
        self.init(kind: .tunnel(Tunnel(proxy: address, authorization: authorization)))
    }

    private static func bad(_ words: String) -> ProviderError {
        ProviderError(.badProxy, "the proxy cannot be used: \(words)")
    }

    /// The way to a service; nil for the direct one.
    /// - Throws: ``ProviderError/Code/badProxy`` if a variable of the environment cannot be read.
    func tunnel(
        to service: HostPort,
        variables: [String: String] = ProcessInfo.processInfo.environment
    ) throws -> Tunnel? {
        switch kind {
        case .direct: return nil
        case .tunnel(let tunnel): return tunnel
        case .environment:
            func value(_ name: String) -> String? {
                [variables[name], variables[name.uppercased()]].compactMap { $0 }.first { !$0.isEmpty }
            }
            let isExcepted = ProxyExceptions(value("no_proxy") ?? "").contain(service)
            guard let text = value("https_proxy"), !isExcepted else { return nil }
            do {
                guard case .tunnel(let tunnel) = try ProviderProxy(text).kind else { return nil }
                return tunnel
            } catch let error as ProviderError {
                throw ProviderError(.badProxy, "\(error.message) (the variable https_proxy or HTTPS_PROXY)")
            }
        }
    }
}

extension ProviderProxy: CustomStringConvertible {
    /// The address without the credential.
    public var description: String {
        switch kind {
        case .environment: "environment"
        case .direct: "none"
        case .tunnel(let tunnel): "http://\(tunnel.proxy)"
        }
    }
}

/// The hosts that are reached without the environment's proxy.
struct ProxyExceptions {
    private let entries: [String]

    init(_ text: String) {
        entries = text.split { $0 == "," || $0.isWhitespace }.map { $0.lowercased() }
    }

    func contain(_ service: HostPort) -> Bool {
        var host = service.host.lowercased()
        if host.hasSuffix(".") { host.removeLast() }
        let address = NumericAddress(host)
        if host == "localhost" || host.hasSuffix(".localhost") || address?.isLoopback == true { return true }
        return entries == ["*"]
            || entries.contains { entry in
                if let address { return Self.matches(entry, address) }
                var name = entry[...]
                if name.hasSuffix(".") { name.removeLast() }
                if name.hasPrefix(".") { name.removeFirst() }
                return !name.isEmpty && (host == name || host.hasSuffix(".\(name)"))
            }
    }

    /// Whether an address is the entry's, or in its network: `10.0.0.0/8`.
    private static func matches(_ entry: String, _ address: NumericAddress) -> Bool {
        let parts = entry.split(separator: "/", maxSplits: 1)
        guard let own = parts.first.flatMap({ NumericAddress(String($0)) }), own.bytes.count == address.bytes.count
        else {
            return false
        }
        let all = own.bytes.count * 8
        guard let bits = parts.count == 2 ? Int(parts[1]) : all, (0...all).contains(bits) else { return false }
        return zip(own.bytes, address.bytes).enumerated().allSatisfy { index, pair in
            let kept = min(8, max(0, bits - index * 8))
            return (pair.0 ^ pair.1) >> (8 - kept) == 0
        }
    }
}
