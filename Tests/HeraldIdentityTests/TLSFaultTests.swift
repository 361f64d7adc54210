import Testing

@testable import HeraldIdentity

struct TLSFaultTests {
    private struct LibraryError: Error, CustomStringConvertible {
        let description: String

        init(_ reason: String) {
            description =
                "handshakeFailed(NIOSSL.BoringSSLError.sslError([Error: 268435581 error:1000007d:SSL "
                + "routines:OPENSSL_internal:\(reason) at /build/checkouts/swift-nio-ssl/handshake.cc:393]))"
        }
    }

    @Test(arguments: [
        ("CERTIFICATE_VERIFY_FAILED", TLSFault.untrusted), ("PEER_DID_NOT_RETURN_A_CERTIFICATE", .noCertificate),
        ("UNSUPPORTED_PROTOCOL", .version), ("WRONG_VERSION_NUMBER", .notTLS), ("HTTP_REQUEST", .notTLS),
        ("TLSV1_ALERT_UNKNOWN_CA", .alert(TLSAlert("unknown_ca"))),
        ("SSLV3_ALERT_CERTIFICATE_EXPIRED", .alert(TLSAlert("certificate_expired"))),
        ("BAD_DECRYPT", .other("BAD_DECRYPT")),
    ])
    func `the reason is extracted, and nothing else is shown`(reason: String, fault: TLSFault) {
        let error = LibraryError(reason)
        #expect(TLSFault(error) == fault)
        let words = TLSFault.words(for: error)
        #expect(!words.contains("/") && !words.contains("Error") && !words.contains("_internal"))
    }

    @Test func `of several reasons, the peer's alert counts first, then a known one`() {
        let text = "OPENSSL_internal:BAD_DECRYPT at /a.cc:1, OPENSSL_internal:TLSV1_ALERT_ACCESS_DENIED at /b.cc:2"
        #expect(TLSFault(text: text) == .alert(TLSAlert("access_denied")))
        let forged = "OPENSSL_internal:BAD_SIGNATURE at /a.cc:1, OPENSSL_internal:CERTIFICATE_VERIFY_FAILED at /b.cc:2"
        #expect(TLSFault(text: forged) == .untrusted)
    }

    @Test func `a closed connection is distinguished from other errors`() {
        #expect(TLSFault(text: "uncleanShutdown") == .ended)
        #expect(
            TLSFault(text: "handshakeFailed(NIOSSL.BoringSSLError.sslError([Error:  EOF during handshake]))") == .ended
        )
        #expect(TLSFault(text: "handshakeFailed(NIOSSL.BoringSSLError.syscallError)") == .other("UNKNOWN"))
        #expect(TLSFault(text: "connection reset by peer (errno: 104)") == nil)
    }

    @Test(arguments: [
        ("unknown_ca", true), ("certificate_revoked", true), ("certificate_expired", true), ("bad_certificate", true),
        ("handshake_failure", false), ("protocol_version", false), ("internal_error", false),
    ])
    func `alerts about the certificate are recognized`(name: String, isAboutCertificate: Bool) {
        #expect((TLSAlert(name).certificateFault != nil) == isAboutCertificate)
    }
}
