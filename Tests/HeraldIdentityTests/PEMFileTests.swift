import Crypto
import CryptoExtras
import Foundation
import SwiftASN1
import Testing
import X509

@testable import HeraldIdentity
@testable import HeraldTrust

/// Keys and certificates are read in the shapes in which people have them.
struct PEMFileTests {
    private static let key = P256.Signing.PrivateKey()
    private static var pem: String { key.pemRepresentation + "\n" }

    @Test func `a private key beside the public key of another one is refused`() throws {
        // The public key is the end of PKCS#8.
        let (own, other) = (Self.key, P256.Signing.PrivateKey())
        let whole = Array(own.derRepresentation)
        let foreign = whole.dropLast(64) + other.publicKey.rawRepresentation
        try #require(whole.suffix(64).elementsEqual(own.publicKey.rawRepresentation))
        #expect(try PEMFile(whole).signingKey().rawRepresentation == own.rawRepresentation)
        #expect(throws: PEMFault.self) { try PEMFile(Array(foreign)).privateKey() }
    }

    /// The base64 of a text's only block.
    private static func body(_ pem: String) -> String {
        pem.split(whereSeparator: \.isNewline).filter { !$0.hasPrefix("-----") }.joined()
    }

    private static func sec1(hasCurve: Bool = true, dropsZeros: Bool = false) throws -> [UInt8] {
        var scalar = Array(key.rawRepresentation)
        if dropsZeros { scalar = Array(scalar.drop { $0 == 0 }) }
        var serializer = DER.Serializer()
        try serializer.appendConstructedNode(identifier: .sequence) { serializer in
            try serializer.serialize(1)
            try serializer.serialize(ASN1OctetString(contentBytes: scalar[...]))
            if hasCurve {
                try serializer.serialize(
                    ASN1ObjectIdentifier.NamedCurves.secp256r1,
                    explicitlyTaggedWithTagNumber: 0,
                    tagClass: .contextSpecific
                )
            }
        }
        return serializer.serializedBytes
    }

    private static func identifier() throws -> [UInt8] {
        var serializer = DER.Serializer()
        try serializer.serialize(ASN1ObjectIdentifier.NamedCurves.secp256r1)
        return serializer.serializedBytes
    }

    private static func shapes() throws -> [String: [UInt8]] {
        let body = body(pem)
        let lines = stride(from: 0, to: body.count, by: 19).map { body.dropFirst($0).prefix(19) }
        let (begin, end) = ("-----BEGIN PRIVATE KEY-----", "-----END PRIVATE KEY-----")
        let attributes = "Bag Attributes\n    friendlyName: Push: key\nKey Attributes: <No Attributes>\n"
        let parameters = PEMFile.text("EC PARAMETERS", der: try identifier())
        let texts = [
            "as it is": pem,
            "one line of base64": "\(begin)\n\(body)\n\(end)\n",
            "another width": "\(begin)\n\(lines.joined(separator: "\n"))\n\(end)\n",
            "one line": "\(begin)\(body)\(end)",
            "spaces for line ends": pem.replacing("\n", with: " "),
            "two characters for line ends": pem.replacing("\n", with: "\\n"),
            "in quotes": "\"\(pem.replacing("\n", with: "\\r\\n"))\"",
            "indented": pem.split(separator: "\n").map { "    \($0)\t\n" }.joined(),
            "spaces at line ends": pem.replacing("\n", with: "  \n"),
            "CRLF": pem.replacing("\n", with: "\r\n"),
            "CR": pem.replacing("\n", with: "\r"),
            "no last newline": String(pem.dropLast()),
            "empty lines": pem.replacing("\n", with: "\n\n"),
            "bag attributes": attributes + pem + "\nkept with care\n",
            "byte order mark": "\u{FEFF}" + pem,
            "six dashes": "-" + pem,
            "headers": "\(begin)\nComment: push key\nOwner: ann\n\n\(body)\n\(end)\n",
            "no padding": pem.replacing("=", with: ""),
            "parameters before it": parameters + PEMFile.text("EC PRIVATE KEY", der: try sec1()),
            "parameters alone name the curve":
                parameters + PEMFile.text("EC PRIVATE KEY", der: try sec1(hasCurve: false)),
            "SEC 1 under the label of PKCS#8": PEMFile.text("PRIVATE KEY", der: try sec1(dropsZeros: true)),
            "base64 alone": "\(body)\n",
        ]
        var shapes = texts.mapValues { Array($0.utf8) }
        shapes["DER"] = Array(key.derRepresentation)
        shapes["DER of SEC 1"] = try sec1()
        shapes["UTF-16"] = [0xFF, 0xFE] + pem.utf16.flatMap { [UInt8($0 & 0xFF), UInt8($0 >> 8)] }
        shapes["UTF-16, the other way"] = [0xFE, 0xFF] + pem.utf16.flatMap { [UInt8($0 >> 8), UInt8($0 & 0xFF)] }
        return shapes
    }

    @Test func `a private key is read in every shape`() throws {
        for (name, bytes) in try Self.shapes() {
            let read = try? PEMFile(bytes).signingKey().rawRepresentation
            #expect(read == Self.key.rawRepresentation, "\(name)")
        }
    }

    /// PKCS#8 with the attributes and the public key that RFC 5958 permits.
    @Test func `a key with attributes is read`() throws {
        let plain = try #require(DERElement(Array(Self.key.derRepresentation)))
        var serializer = DER.Serializer()
        try serializer.appendConstructedNode(identifier: .sequence) { serializer in
            try serializer.serialize(1)
            for member in plain.members.dropFirst() { serializer.serialize(member) }
            for number in [UInt(0), 1] {
                let tag = ASN1Identifier(tagWithNumber: number, tagClass: .contextSpecific)
                serializer.appendPrimitiveNode(identifier: tag) { $0.append(contentsOf: [0, 1]) }
            }
        }
        let key = try PEMFile(Array(PEMFile.text("PRIVATE KEY", der: serializer.serializedBytes).utf8)).signingKey()
        #expect(key.rawRepresentation == Self.key.rawRepresentation)
    }

    @Test func `a public key is read in every shape`() throws {
        let pem = Self.key.publicKey.pemRepresentation
        let der = Array(Self.key.publicKey.derRepresentation)
        for text in [
            pem, pem.replacing("\n", with: "\r\n"), "note\n" + pem.replacing("\n", with: "\\n"), Self.body(pem),
        ] {
            let read = try PEMFile(Array(text.utf8)).verificationKey()
            #expect(read.rawRepresentation == Self.key.publicKey.rawRepresentation)
        }
        #expect(try PEMFile(der).verificationKey().rawRepresentation == Self.key.publicKey.rawRepresentation)
    }

    @Test func `several certificates are read with text between them`() throws {
        let (first, second) = (try Self.certificate("first"), try Self.certificate("second"))
        let text =
            "subject=first\n\(first)\nsubject=second\r\n\(second.replacing("CERTIFICATE", with: "X509 CERTIFICATE"))"
        let file = try PEMFile(Array((text + Self.pem).utf8))
        #expect(
            try file.certificates().map { try Certificate(derEncoded: $0).subject.description } == [
                "CN=first", "CN=second",
            ]
        )
        let bundle = try PEMBundle(pem: Array((text + Self.pem).utf8), path: "x")
        #expect(bundle.certificates.count == 2 && bundle.key?.publicKey == .init(Self.key.publicKey))
        // What is written for other tools has the blocks alone.
        let plain = try PEMDocument.parseMultiple(
            pemString: String(decoding: try file.certificateText(), as: UTF8.self)
        )
        #expect(plain.map(\.discriminator) == ["CERTIFICATE", "CERTIFICATE"])
        // OpenSSL's trusted certificates have more after the certificate.
        let der = try PEMFile(Array(first.utf8)).certificates()[0]
        let trusted = PEMFile.text("TRUSTED CERTIFICATE", der: der + [0x30, 0x03, 0x0C, 0x01, 0x78])
        #expect(try PEMFile(Array(trusted.utf8)).certificates() == [der])
        #expect(try PEMFile(der).certificates() == [der])
    }

    @Test func `requests are read in every shape`() throws {
        let request = try CertificateSigningRequest(
            version: .v1,
            subject: DistinguishedName { CommonName("one") },
            privateKey: .init(Self.key),
            attributes: .init()
        )
        let pem = try request.serializeAsPEM().pemString
        let texts = [
            pem, "Certificate Request:\n  Data:\n" + pem, pem.replacing("\n", with: "\r\n"), "\u{FEFF}" + pem,
            Self.body(pem),
            pem.replacing("BEGIN ", with: "BEGIN NEW ").replacing("END ", with: "END NEW "),
        ]
        for text in texts { try CertificateRequest.check(Array(text.utf8)) }
        #expect(throws: TrustError(.badRequest, "")) { try CertificateRequest.check(Array(Self.pem.utf8)) }
    }

    private static func certificate(_ name: String) throws -> String {
        let subject = try DistinguishedName { CommonName(name) }
        let certificate = try Certificate(
            version: .v3,
            serialNumber: .init(),
            publicKey: .init(key.publicKey),
            notValidBefore: Date(timeIntervalSince1970: 1_700_000_000),
            notValidAfter: Date(timeIntervalSince1970: 1_800_000_000),
            issuer: subject,
            subject: subject,
            signatureAlgorithm: .ecdsaWithSHA256,
            extensions: .init(),
            issuerPrivateKey: .init(key)
        )
        return try certificate.serializeAsPEM().pemString + "\n"
    }

    // MARK: - What is really wrong

    /// A text, what is asked of it, and words of the answer.
    private static func faults() throws -> [(String, (PEMFile) throws -> Void, String)] {
        let key: (PEMFile) throws -> Void = { _ = try $0.signingKey() }
        let certificate: (PEMFile) throws -> Void = { _ = try $0.certificates() }
        let publicKey: (PEMFile) throws -> Void = { _ = try $0.verificationKey() }
        let encrypted =
            "-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-256-CBC,00\n\nAAAA\n"
            + "-----END RSA PRIVATE KEY-----\n"
        let info = try DERElement(Array(Self.key.derRepresentation)).map { element in
            var serializer = DER.Serializer()
            try serializer.appendConstructedNode(identifier: .sequence) { serializer in
                serializer.serialize(element.members[1])
                try serializer.serialize(ASN1OctetString(contentBytes: [1, 2, 3]))
            }
            return Data(serializer.serializedBytes).base64EncodedString()
        }
        let rsa = try _RSA.Signing.PrivateKey(keySize: .bits2048)
        return [
            ("", key, "it is empty"),
            ("\r\n \u{FEFF}".replacing("\u{FEFF}", with: ""), key, "it is empty"),
            ("hello", key, "it is not PEM"),
            ("{\"key\": \"-----BEGIN\"}", key, "it is not PEM"),
            (String(pem.dropLast(12)), key, "it is cut off: its block PRIVATE KEY has no END line"),
            (String(pem.dropLast(40)) + (try Self.certificate("x")), key, "it is cut off"),
            (pem.replacing("END PRIVATE", with: "END EC PRIVATE"), key, "END line of another one"),
            (pem.replacing("M", with: "!"), key, "its block PRIVATE KEY is not base64"),
            (pem.replacing("MIG", with: "MJG"), key, "its block PRIVATE KEY cannot be read"),
            (PEMFile.text("ENCRYPTED PRIVATE KEY", der: [0x30, 0]), key, "encrypted: decrypt it with `openssl pkey"),
            (encrypted, key, "encrypted: decrypt it with `openssl pkey"),
            (info ?? "", key, "encrypted: decrypt it with `openssl pkey"),
            (PEMFile.text("OPENSSH PRIVATE KEY", der: [1]), key, "ssh-keygen -p -m PKCS8"),
            (pem + pem, key, "two private keys"),
            (try Self.certificate("x"), key, "it has no private key, but only CERTIFICATE"),
            (Self.key.publicKey.pemRepresentation, key, "it has no private key, but only PUBLIC KEY"),
            (P384.Signing.PrivateKey().pemRepresentation, key, "of P-384, and one of P-256"),
            (rsa.pemRepresentation, key, "of RSA, and one of P-256"),
            (rsa.pkcs8PEMRepresentation, key, "of RSA, and one of P-256"),
            (rsa.publicKey.pemRepresentation, publicKey, "of RSA, and one of P-256"),
            (P521.Signing.PrivateKey().publicKey.pemRepresentation, publicKey, "of P-521, and one of P-256"),
            (pem, publicKey, "belongs nowhere but with the provider"),
            (pem, certificate, "it has no certificate, but only PRIVATE KEY"),
            (PEMFile.text("CERTIFICATE", der: [0x30, 0]), certificate, "its block CERTIFICATE cannot be read"),
            (PEMFile.text("PKCS7", der: [0x30, 0]), certificate, "openssl pkcs7 -print_certs"),
            // PKCS#12: version 3, and id-data.
            (
                Data([0x30, 18, 2, 1, 3, 0x30, 13, 6, 9, 42, 134, 72, 134, 247, 13, 1, 7, 1, 5, 0])
                    .base64EncodedString(),
                certificate, "openssl pkcs12"
            ),
        ]
    }

    @Test func `what is wrong is said and not shown`() throws {
        for (text, read, words) in try Self.faults() {
            do {
                try read(try PEMFile(Array(text.utf8)))
                Issue.record("read: \(words)")
            } catch let fault as PEMFault {
                #expect(fault.description.contains(words), "\(fault) is not: \(words)")
                #expect(!fault.description.contains(Self.body(Self.pem).prefix(12)))
            }
        }
    }

    /// Lines of 64 characters hold 48 bytes each.
    @Test(arguments: [1, 47, 48, 49, 95, 96, 97, 5000])
    func `a text is the one that SwiftASN1 writes, and is read back`(length: Int) throws {
        let der = (0..<length).map { UInt8(truncatingIfNeeded: $0 &* 7) }
        let text = PEMFile.text("X509 CRL", der: der)
        #expect(text == PEMDocument(type: "X509 CRL", derBytes: der).pemString + "\n")
        #expect(try PEMFile(Array(text.utf8)).revocationList() == der)
    }
}
