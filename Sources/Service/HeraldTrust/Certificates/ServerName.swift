import Foundation
import HeraldModel
import SwiftASN1
import X509

/// A name by which clients reach the service: a host name, or an address.
package enum ServerName: Hashable, Sendable {
    /// Lower-case; its first label may be `*`.
    case host(String)
    /// 4 or 16 bytes.
    case address([UInt8])

    /// Reads a name as an operator types it.
    /// - Returns: nil if it is neither an address nor a host name (RFC 1123 §2.1, and underscores, which container networks
    ///   use).
    package init?(_ text: String) {
        if let address = NumericAddress(text) {
            self = .address(address.bytes)
            return
        }
        guard !text.isEmpty, text.utf8.count <= 253 else { return nil }
        let lowered = text.lowercased()
        let labels = lowered.split(separator: ".", omittingEmptySubsequences: false)
        for (index, label) in labels.enumerated() {
            if index == 0, label == "*", labels.count > 1 { continue }
            guard (1...63).contains(label.utf8.count), label.first != "-", label.last != "-",
                label.utf8.allSatisfy(ServerName.isLetterDigitOrMark)
            else { return nil }
        }
        self = .host(lowered)
    }

    init?(_ name: GeneralName) {
        switch name {
        case .dnsName(let name): self = .host(name.lowercased())
        case .ipAddress(let octets) where [4, 16].contains(octets.bytes.count): self = .address(Array(octets.bytes))
        default: return nil
        }
    }

    /// Whether a certificate with these names is one for this name: a `*` stands for the first label (RFC 6125 §6.4.3).
    package func isNamed(in names: Set<ServerName>) -> Bool {
        if names.contains(self) { return true }
        guard case .host(let host) = self, let dot = host.firstIndex(of: ".") else { return false }
        return names.contains(.host("*" + host[dot...]))
    }

    var generalName: GeneralName {
        switch self {
        case .host(let name): .dnsName(name)
        case .address(let bytes): .ipAddress(ASN1OctetString(contentBytes: bytes[...]))
        }
    }

    /// The names that every service has: the local ones, a local one for the sandbox, and the machine's.
    static func local() -> [ServerName] {
        let machine = ServerName(ProcessInfo.processInfo.hostName)
        let names = [
            ServerName("localhost"), ServerName("127.0.0.1"), ServerName("::1"), ServerName("sandbox.localhost"),
        ]
        return names.compactMap { $0 } + [machine].compactMap { $0 }
    }

    /// The names of Apple's push services, for clients with a fixed address.
    package static let apple: [ServerName] = [
        "api.push.apple.com", "api.sandbox.push.apple.com", "api.development.push.apple.com",
        "api-broadcast.push.apple.com", "api-broadcast.sandbox.push.apple.com",
        "api-manage-broadcast.push.apple.com", "api-manage-broadcast.sandbox.push.apple.com",
        "gateway.push.apple.com", "gateway.sandbox.push.apple.com",
        "feedback.push.apple.com", "feedback.sandbox.push.apple.com",
    ].map { .host($0) }

    private static func isLetterDigitOrMark(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"),
            UInt8(ascii: "_"):
            true
        default: false
        }
    }
}

extension ServerName: CustomStringConvertible {
    /// The name as it is typed.
    package var description: String {
        switch self {
        case .host(let name): name
        case .address(let bytes): ServerName.addressText(bytes)
        }
    }

    private static func addressText(_ bytes: [UInt8]) -> String {
        var text = [CChar](repeating: 0, count: Int(INET6_ADDRSTRLEN))
        guard inet_ntop(bytes.count == 4 ? AF_INET : AF_INET6, bytes, &text, socklen_t(text.count)) != nil else {
            return Hex.text(bytes)
        }
        return String(decoding: text.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }
}
