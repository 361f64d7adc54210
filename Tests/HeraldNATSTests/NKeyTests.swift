import Crypto
import Foundation
import Testing

@testable import HeraldNATS

@Suite struct NKeyTests {
    // Made with the Python library `nkeys`.
    private static let seed = "SUAEL6GG2L2HIF7DUGZJGMRUFKXELGGYFMHF76UO2AYBG3K4YLWR3FKC2Q"
    private static let publicKey = "UD6OU4D3CIOGIDZVL4ANXU3NWXOW5DCDE2YPZDBHPBXCVKHSODUA4FKI"
    private static let nonce = "PXoWU7zWAMt75FY"
    private static let signature =
        "ozB-oVwFoxM5oqO1ckvKBXkxf4BhijmusABnmJDHc4aGkYzy0-SRaz1TFEpMpWLyjqHdHSBY1NPWIRXfO0XWDA"

    @Test func `base 32 is that of RFC 4648, and refuses what no bytes have`() {
        for (text, bytes) in [("", ""), ("MY", "f"), ("MZXW6", "foo"), ("MZXW6YTBOI", "foobar")] {
            #expect(Base32.encode(bytes.utf8) == text)
            #expect(Base32.decode(text) == Array(bytes.utf8))
        }
        for text in ["MZ", "M", "my", "M1", "MZXW6YT"] { #expect(Base32.decode(text) == nil) }
    }

    @Test func `the checksum is CRC-16 of XMODEM`() {
        #expect(NKey.checksum("123456789".utf8) == 0x31C3)
    }

    @Test func `a seed gives the public key and the signature that another library makes`() throws {
        let key = try NKey(seed: Self.seed)
        #expect(key.publicKey == Self.publicKey)
        let bytes = try #require(Base32.decode(Self.publicKey))
        let verifier = try Curve25519.Signing.PublicKey(rawRepresentation: bytes.dropFirst().dropLast(2))
        // Platforms may sign with a random number, so signatures are verified and not compared.
        for signature in [Self.signature, try key.signature(of: Self.nonce)] {
            #expect(verifier.isValidSignature(try #require(bytesOfBase64URL(signature)), for: Data(Self.nonce.utf8)))
        }
    }

    @Test(
        arguments: [
            ("", "58 characters"), ("SUAEL6GG", "58 characters"), (publicKey, "58 characters"),
            ("SUAEL6GG2L2HIF7DUGZJGMRUFKXELGGYFMHF76UO2AYBG3K4YLWR3FKC2A", "checksum"),
            ("SAAAAAICAMCAKBQHBAEQUCYMBUHA6EARCIJRIFIWC4MBSGQ3DQOR4HYMHI", "not a user's seed"),
        ]
    )
    func `a seed that cannot be used is refused with the reason`(seed: String, reason: String) {
        let error = #expect(throws: NATSError.self) { try NKey(seed: seed) }
        #expect(error?.kind == .badSetting)
        #expect(error?.reason.contains(reason) == true)
    }

    @Test func `a credentials file is read, and says what it lacks`() throws {
        let file = """
            -----BEGIN NATS USER JWT-----
            eyJ0eXAiOiJKV1QifQ.e30.c2ln
            ------END NATS USER JWT------

            ************************* IMPORTANT *************************
            NKEY Seed printed below can be used to sign and prove identity.

            -----BEGIN USER NKEY SEED-----
            \(Self.seed)
            ------END USER NKEY SEED------
            """
        for text in [file, file.replacing("\n", with: "\r\n")] {
            guard case .jwt(let jwt, let key) = try NATSCredential(creds: text) else {
                Issue.record("no JWT")
                return
            }
            #expect(jwt == "eyJ0eXAiOiJKV1QifQ.e30.c2ln")
            #expect(key.publicKey == Self.publicKey)
        }
        for (word, reason) in [("USER JWT", "USER JWT"), ("NKEY SEED", "NKEY SEED")] {
            let error = #expect(throws: NATSError.self) {
                try NATSCredential(
                    creds: file.replacing("-----BEGIN NATS \(word)", with: "").replacing(
                        "-----BEGIN USER \(word)",
                        with: ""
                    )
                )
            }
            #expect(error?.reason.contains(reason) == true)
        }
        #expect(throws: NATSError.self) { try NATSCredential(creds: "") }
    }

    private func bytesOfBase64URL(_ text: String) -> Data? {
        let standard = text.replacing("-", with: "+").replacing("_", with: "/")
        return Data(base64Encoded: standard + String(repeating: "=", count: (4 - standard.count % 4) % 4))
    }
}
