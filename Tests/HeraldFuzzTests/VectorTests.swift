import Crypto
import Foundation
import HeraldModel
import Testing
import X509

@testable import HeraldIdentity
@testable import HeraldTrust

/// The vectors of `cryptography`, the library of Python: keys, certificates, requests and revocation lists, many of them broken.
///
/// Herald reads each as that library does, except for those named here with their reason.
@Suite struct VectorTests {
    /// One file, and how the other library reads it: see `Tests/vectors.py`.
    private struct Vector: Decodable {
        let path: String
        let key: String?
        let certificates: [String]?
        let list: [String: Int64]?
        let signer: String?
        let request: String?
    }

    private let root: URL
    private let vectors: [Vector]

    init() throws {
        let tests = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        let process = Process()
        let output = Pipe()
        process.executableURL = tests.deletingLastPathComponent().appending(path: ".build/venv/bin/python")
        process.arguments = [tests.appending(path: "vectors.py").path]
        process.standardOutput = output
        try process.run()
        let text = String(decoding: try #require(try output.fileHandleForReading.readToEnd()), as: UTF8.self)
        let lines = text.split(separator: "\n")
        root = URL(filePath: String(try #require(lines.first)))
        vectors = try lines.dropFirst().map { try JSONDecoder().decode(Vector.self, from: Data($0.utf8)) }
    }

    private func bytes(_ path: String) throws -> [UInt8] { Array(try Data(contentsOf: root.appending(path: path))) }

    /// Checks that each vector is either read alike or is an exception, and that no exception is left over.
    private func compare(
        _ exceptions: [String: String],
        atLeast count: Int,
        _ isAlike: (Vector, [UInt8]) throws -> Bool?
    ) throws {
        var (compared, different) = (0, Set<String>())
        for vector in vectors {
            guard let isAlike = try isAlike(vector, bytes(vector.path)) else { continue }
            compared += 1
            if !isAlike { different.insert(vector.path) }
        }
        #expect(different == Set(exceptions.keys))
        #expect(compared >= count)
    }

    private static func isEqual(_ own: Certificate.PublicKey?, _ other: String?) -> Bool {
        // X509's bytes are those of the bit string, with which the other ones end.
        guard let own, let other else { return own == nil && other == nil }
        return other.hasSuffix(Hex.text(Data(own.subjectPublicKeyInfoBytes)))
    }

    @Test func `no vector breaks a reader`() async throws {
        let names = ["trust-files", "certificates", "crl", "certificate-requests"]
        let targets = try names.map { try #require(FuzzTarget.named($0)) }
        for vector in vectors {
            let bytes = try bytes(vector.path)
            let blocks = (try? PEMFile(bytes).blocks.compactMap(\.der)) ?? []
            for input in [bytes] + blocks {
                for target in targets { target.body(input) }
            }
            // Other tests wait for this thread.
            await Task.yield()
        }
        #expect(vectors.count > 1000)
    }

    @Test func `private keys are read alike`() throws {
        let exceptions = [
            "asymmetric/PKCS8/unenc-rsa-pkcs8.pem": "1,024 bits are too few here",
            "asymmetric/DER_Serialization/unenc-rsa-pkcs8.der": "the same",
            "asymmetric/PKCS8/invalid-version.der":
                "version 1 promises a public key, which RFC 5958 leaves out at will",
        ]
        try compare(exceptions, atLeast: 12) { vector, bytes in
            let key = try? PEMFile(bytes).privateKey()
            // DSA, DH, X25519, X448, Ed448 and RSA-PSS are named as what they are, and used for nothing.
            guard key?.algorithm != .other, key != nil || vector.key != nil else { return nil }
            return Self.isEqual(key?.certificateKey?.publicKey, vector.key)
        }
    }

    @Test func `certificates are read alike`() throws {
        // Here a certificate is read by its structure; what is in it, TLS judges.
        let exceptions = [
            "x509/badasn1time.pem": "an impossible time",
            "x509/custom/invalid_version.pem": "version 7",
            "x509/ed25519/ed25519-rfc8410.pem": "a default value that is written out",
            "x509/PKITS_data/certs/DSAParametersInheritedCACert.crt": "a key without parameters",
            "x509/PKITS_data/certs/ValidDSAParameterInheritanceTest5EE.crt": "the same",
        ]
        try compare(exceptions, atLeast: 533) { vector, bytes in
            let own = try? PEMFile(bytes).certificates()
            guard own != nil || vector.certificates != nil else { return nil }
            return own?.map { Hex.text(Data(SHA256.hash(data: $0))) } == vector.certificates
        }
    }

    @Test func `signing requests are read alike`() throws {
        try compare([:], atLeast: 9) { vector, bytes in
            let own = try? CertificateRequest(bytes)
            guard own != nil || vector.request != nil else { return nil }
            return Self.isEqual(own?.publicKey, vector.request)
        }
    }

    @Test func `revocation lists are read alike`() throws {
        try compare([:], atLeast: 157) { vector, bytes in
            guard let expected = vector.list, let signer = vector.signer else { return nil }
            // An authority that Herald would not take.
            guard let bundle = try? PEMBundle(pem: self.bytes(signer), path: signer),
                let authority = try? CertificateAuthority(bundle: bundle, path: signer)
            else { return nil }
            let name = vector.path.split(separator: "/").last ?? ""
            do {
                let list = try RevocationList(der: PEMFile(bytes).revocationList(), authority: authority)
                return list.count == expected.count
                    && expected.allSatisfy { list.revoked(serial: $0.key)?.seconds == $0.value }
            } catch RevocationList.ParseError.criticalExtension {
                return name.contains("Unknown")
            } catch RevocationList.ParseError.partial {
                // These leave out some of the revoked certificates, or name those of another authority.
                return Self.partial.contains { name.contains($0) }
            }
        }
    }

    private static let partial = [
        "deltaCRL.crl", "Indicator", "distributionPoint", "indirect", "onlyContains", "onlySome", "CRLCertCRL",
        "SelfIssuedCertCRL",
    ]
}
