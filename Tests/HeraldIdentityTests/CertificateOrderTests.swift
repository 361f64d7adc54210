import Crypto
import CryptoExtras
import Foundation
import HeraldTestSupport
import SwiftASN1
import Testing
import X509

@testable import HeraldIdentity
@testable import HeraldTrust

struct CertificateOrderTests {
    /// Root, intermediate and leaf, with the leaf's key.
    private let blocks: [String]
    private let key: Certificate.PrivateKey

    init() throws {
        let root = Certificate.PrivateKey(P256.Signing.PrivateKey())
        let middle = Certificate.PrivateKey(P384.Signing.PrivateKey())
        key = Certificate.PrivateKey(try _RSA.Signing.PrivateKey(keySize: .bits2048))
        blocks = [
            try Self.certificate("root", root, by: "root", root),
            try Self.certificate("middle", middle, by: "root", root),
            try Self.certificate("leaf", key, by: "middle", middle),
        ]
    }

    private static func certificate(
        _ subject: String,
        _ key: Certificate.PrivateKey,
        by issuer: String,
        _ issuerKey: Certificate.PrivateKey
    ) throws -> String {
        let begin = Date(timeIntervalSince1970: 1_700_000_000)
        let certificate = try Certificate(
            version: .v3,
            serialNumber: .init(),
            publicKey: key.publicKey,
            notValidBefore: begin,
            notValidAfter: begin + 86_400,
            issuer: try DistinguishedName { CommonName(issuer) },
            subject: try DistinguishedName { CommonName(subject) },
            extensions: .init(),
            issuerPrivateKey: issuerKey
        )
        return try certificate.serializeAsPEM().pemString + "\n"
    }

    private func names(_ certificates: [[UInt8]]) throws -> [String] {
        try certificates.map { try Certificate(derEncoded: $0).subject.description }
    }

    @Test(arguments: [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]], 0...3)
    func `a chain is put in order, whatever the order of its file`(order: [Int], place: Int) throws {
        var parts = order.map { blocks[$0] }
        parts.insert(try key.serializeAsPEM().pemString + "\n", at: place)
        let file = Array(parts.joined().utf8)
        #expect(try names(try PEMFile(file).identity().certificates) == ["CN=leaf", "CN=middle", "CN=root"])
        #expect(try PEMBundle(pem: file, path: "x").certificates.first?.publicKey == key.publicKey)
    }

    @Test func `certificates that are not part of the chain come last`() throws {
        let stranger = try Self.certificate(
            "other",
            .init(P256.Signing.PrivateKey()),
            by: "nobody",
            .init(P256.Signing.PrivateKey())
        )
        let text = stranger + blocks[1] + blocks[2] + (try key.serializeAsPEM().pemString)
        #expect(
            try names(try PEMFile(Array(text.utf8)).identity().certificates) == ["CN=leaf", "CN=middle", "CN=other"]
        )
    }

    @Test func `a key that belongs to none of the certificates is told so`() throws {
        let other = try Certificate.PrivateKey(P256.Signing.PrivateKey()).serializeAsPEM().pemString
        for (text, words) in [
            (
                blocks[2] + other,
                "its private key belongs to another certificate: put a key and its own certificate into it"
            ),
            (blocks.joined() + other, "its private key belongs to none of its 3 certificates"),
        ] {
            let fault = #expect(throws: PEMFault.self) { try PEMFile(Array(text.utf8)).identity() }
            #expect(fault?.description.hasPrefix(words) == true)
            #expect(throws: TrustError(.damaged, "")) { try PEMBundle(pem: Array(text.utf8), path: "x") }
        }
    }

    @Test func `a request that is cut anywhere is refused, and traps nowhere`() throws {
        let request = try CertificateSigningRequest(
            version: .v1,
            subject: DistinguishedName { CommonName("x") },
            privateKey: key,
            attributes: .init()
        )
        let der = Array(Data(try request.serializeAsPEM().derBytes))
        #expect(RequestFault(der) == nil)
        for count in 0..<der.count { #expect(RequestFault(Array(der.prefix(count))) == .damaged) }
    }
}
