/// What went wrong in TLS, for people.
///
/// The TLS library (BoringSSL, under swift-nio-ssl) tells most reasons apart only in the text of its errors, beside files
/// and lines of the machine that built it. This reads the reason from that text; nothing else of it is to be shown.
package enum TLSFault: Hashable, Sendable {
    /// The peer ended the connection with an alert.
    case alert(TLSAlert)
    /// The peer's certificate did not stand the checks of this side.
    case untrusted
    /// The peer showed no certificate, and one is required.
    case noCertificate
    /// The peer speaks no version of TLS that is spoken here.
    case version
    /// What the peer says is not TLS.
    case notTLS
    /// The connection ended before TLS did.
    case ended
    /// Something rarer, by the library's name for it: `BAD_DECRYPT`.
    case other(String)

    /// - Parameter error: Any error; nil comes of one that is not of TLS.
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
            // What led to it, as a wrong signature leads to a certificate that is not accepted, may stand before it.
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

    /// An error in words: those of a fault of TLS, or else the error's own.
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
        case .version: "the peer speaks no version of TLS that is spoken here (1.2, 1.3)"
        case .notTLS: "what the peer says is not TLS"
        case .ended: "the connection ended without TLS's good-bye"
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

    /// Reads the library's name for an alert that the peer sent: `TLSV1_ALERT_UNKNOWN_CA`; nil if it is none.
    init?(reason: String) {
        guard reason.hasPrefix("TLSV1_") || reason.hasPrefix("SSLV3_"), let range = reason.firstRange(of: "_ALERT_")
        else { return nil }
        name = reason[range.upperBound...].lowercased()
    }

    package var description: String { name }

    /// What the peer has against the certificate that it was shown; nil if the alert is about something else.
    package var certificateFault: String? {
        switch name {
        case "unknown_ca": "it is of no authority that is trusted there"
        case "certificate_revoked": "it was revoked"
        case "certificate_expired": "it has expired"
        case "certificate_required": "one is wanted, and there is none"
        case "bad_certificate", "certificate_unknown": "it is not valid there"
        case "unsupported_certificate": "it is of a kind that is not taken there"
        case "access_denied": "it is not let in"
        default: nil
        }
    }
}
