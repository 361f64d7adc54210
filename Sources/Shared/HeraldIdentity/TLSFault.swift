/// The reason of a TLS failure, for people.
///
/// The TLS library (BoringSSL, in swift-nio-ssl) distinguishes most reasons only in the text of its errors, beside source
/// files and lines. This type extracts the reason from that text.
package enum TLSFault: Hashable, Sendable {
    /// The peer ended the connection with an alert.
    case alert(TLSAlert)
    /// This side refused the peer's certificate.
    case untrusted
    /// The peer showed no certificate, although one is required.
    case noCertificate
    /// The peer supports no common TLS version.
    case version
    /// The peer does not speak TLS.
    case notTLS
    /// The connection ended without a TLS close.
    case ended
    /// Another reason, by the library's name: `BAD_DECRYPT`.
    case other(String)

    /// - Parameter error: Any error; the result is nil if TLS is not its cause.
    package init?(_ error: any Error) {
        self.init(text: "\(error)")
    }

    init?(text: String) {
        // BoringSSL's form: error:<code>:<library>:OPENSSL_internal:<reason> at <file>:<line>.
        let mark = "OPENSSL_internal:"
        let reasons = text.ranges(of: mark).map { range in
            String(text[range.upperBound...].prefix { $0.isASCII && ($0.isLetter || $0.isNumber || $0 == "_") })
        }
        if let alert = reasons.lazy.compactMap({ TLSAlert(reason: $0) }).first {
            self = .alert(alert)
        } else if let fault = reasons.lazy.compactMap({ TLSFault(known: $0) }).first {
            // A more detailed cause, for example a wrong signature, may come before it.
            self = fault
        } else if let reason = reasons.first(where: { !$0.isEmpty }) {
            self = .other(reason)
        } else if text.contains("EOF during handshake") || text.contains("uncleanShutdown") {
            self = .ended
        } else if text.contains("sslError") || text.contains("handshakeFailed") {
            self = .other("UNKNOWN")
        } else {
            return nil
        }
    }

    private init?(known reason: String) {
        switch reason {
        case "CERTIFICATE_VERIFY_FAILED": self = .untrusted
        case "PEER_DID_NOT_RETURN_A_CERTIFICATE": self = .noCertificate
        case "UNSUPPORTED_PROTOCOL", "NO_SUPPORTED_VERSIONS_ENABLED": self = .version
        case "WRONG_VERSION_NUMBER", "HTTP_REQUEST", "HTTPS_PROXY_REQUEST": self = .notTLS
        default: return nil
        }
    }

    /// The text of an error: that of its TLS fault, or otherwise its own.
    package static func words(for error: any Error) -> String {
        TLSFault(error)?.description ?? "\(error)"
    }
}

extension TLSFault: CustomStringConvertible {
    package var description: String {
        switch self {
        case .alert(let alert): "the peer ended TLS with the alert \(alert)"
        case .untrusted: "the peer's certificate is not accepted"
        case .noCertificate: "the peer showed no certificate"
        case .version: "the peer supports neither TLS 1.2 nor TLS 1.3"
        case .notTLS: "the peer does not speak TLS"
        case .ended: "the connection ended without a TLS close"
        case .other(let reason): "TLS failed: \(reason.lowercased().replacing("_", with: " "))"
        }
    }
}

/// An alert of TLS (RFC 8446 §6), by the standard's name: `unknown_ca`.
package struct TLSAlert: Hashable, Sendable, CustomStringConvertible {
    package let name: String

    package init(_ name: String) {
        self.name = name
    }

    /// Parses the library's name of an alert from the peer: `TLSV1_ALERT_UNKNOWN_CA`; nil if it is not an alert.
    init?(reason: String) {
        guard reason.hasPrefix("TLSV1_") || reason.hasPrefix("SSLV3_"), let range = reason.firstRange(of: "_ALERT_")
        else { return nil }
        name = reason[range.upperBound...].lowercased()
    }

    /// Reads the description of an unencrypted alert record (RFC 8446 §5.1, §6); nil if the bytes are another record.
    package init?(record: some Collection<UInt8>) {
        let bytes = record.prefix(8)
        guard bytes.count == 7, bytes.starts(with: [21, 3]), bytes.dropFirst(3).starts(with: [0, 2]),
            let code = Array(bytes).last
        else { return nil }
        switch code {
        case 42: name = "bad_certificate"
        case 43: name = "unsupported_certificate"
        case 44: name = "certificate_revoked"
        case 45: name = "certificate_expired"
        case 46: name = "certificate_unknown"
        case 48: name = "unknown_ca"
        default: name = "\(code)"
        }
    }

    package var description: String { name }

    /// Whether this side's certificate was revoked.
    package var isRevocation: Bool { name == "certificate_revoked" }

    /// Whether this side's certificate has expired, by the peer's clock.
    package var isExpiry: Bool { name == "certificate_expired" }

    /// The peer's problem with this side's certificate; nil if the alert has another cause.
    package var certificateFault: String? {
        switch name {
        case "unknown_ca": "the peer does not trust its authority"
        case "certificate_revoked": "it was revoked"
        case "certificate_expired": "it has expired"
        case "certificate_required": "the peer requires one"
        case "bad_certificate", "certificate_unknown": "the peer considers it invalid"
        case "unsupported_certificate": "the peer does not support its kind"
        case "access_denied": "the peer denies it access"
        default: nil
        }
    }
}
