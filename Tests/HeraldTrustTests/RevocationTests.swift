import Crypto
import Foundation
import HeraldModel
import HeraldTestSupport
import HeraldTrust
import SwiftASN1
import Testing
import X509

/// A valid revocation list, of which a test changes parts.
private struct Draft {
    var version: Int? = 1
    var innerAlgorithm: ASN1ObjectIdentifier = [1, 2, 840, 10045, 4, 3, 2]
    var outerAlgorithm: ASN1ObjectIdentifier = [1, 2, 840, 10045, 4, 3, 2]
    var issuer: DistinguishedName
    var thisUpdate = "260301120000Z"
    var nextUpdate: String? = "360301120000Z"
    /// Serial numbers, each with the extensions of its entry.
    var entries: [([UInt8], [Certificate.Extension])] = [([0x42], [])]
    var extensions: [Certificate.Extension] = [.init(oid: [2, 5, 29, 20], critical: false, value: [0x02, 0x01, 0x05])]
    var signature: ([UInt8]) -> [UInt8] = { $0 }

    init(issuer: DistinguishedName) {
        self.issuer = issuer
    }

    func der(_ key: Certificate.PrivateKey) throws -> [UInt8] {
        var body = DER.Serializer()
        try body.appendConstructedNode(identifier: .sequence) { coder in
            if let version { try coder.serialize(version) }
            try coder.appendConstructedNode(identifier: .sequence) { try $0.serialize(innerAlgorithm) }
            try coder.serialize(issuer)
            write(thisUpdate, into: &coder)
            if let nextUpdate { write(nextUpdate, into: &coder) }
            if !entries.isEmpty {
                try coder.appendConstructedNode(identifier: .sequence) { coder in
                    for (serial, extensions) in entries { try write(serial, extensions, into: &coder) }
                }
            }
            if !extensions.isEmpty {
                try coder.serialize(explicitlyTaggedWithTagNumber: 0, tagClass: .contextSpecific) {
                    try $0.serializeSequenceOf(extensions)
                }
            }
        }
        let signed = try key.sign(bytes: body.serializedBytes, signatureAlgorithm: .ecdsaWithSHA256)
        var list = DER.Serializer()
        try list.appendConstructedNode(identifier: .sequence) { coder in
            coder.serializeRawBytes(body.serializedBytes)
            try coder.appendConstructedNode(identifier: .sequence) { try $0.serialize(outerAlgorithm) }
            try coder.serialize(ASN1BitString(bytes: signature(signed.rawRepresentation)[...]))
        }
        return list.serializedBytes
    }

    private func write(
        _ serial: [UInt8],
        _ extensions: [Certificate.Extension],
        into coder: inout DER.Serializer
    ) throws {
        try coder.appendConstructedNode(identifier: .sequence) { coder in
            coder.appendPrimitiveNode(identifier: .integer) { $0 += serial }
            write("260228120000Z", into: &coder)
            if !extensions.isEmpty { try coder.serializeSequenceOf(extensions) }
        }
    }

    private func write(_ time: String, into coder: inout DER.Serializer) {
        coder.appendPrimitiveNode(identifier: time.utf8.count == 13 ? .utcTime : .generalizedTime) { $0 += time.utf8 }
    }
}

struct RevocationTests {
    private let trust: TestTrust
    private let authority: CertificateAuthority
    private let key: Certificate.PrivateKey

    init() async throws {
        trust = try await TestTrust(clock: ManualClock(WallTime(seconds: 1_772_366_400)))
        authority = trust.folder.deviceAuthority
        key = try trust.signingKey(of: .device)
    }

    private var draft: Draft { Draft(issuer: authority.certificate.subject) }

    private func parseError(_ draft: Draft) throws -> RevocationList.ParseError? {
        let der = try draft.der(key)
        do {
            _ = try RevocationList(der: der, authority: authority)
            return nil
        } catch {
            return error
        }
    }

    @Test func `a list has the revoked serial numbers and their times`() throws {
        var draft = draft
        draft.entries = [([0x42], []), ([0x00, 0xFF, 0x01], []), ([0x01, 0x00], [])]
        let list = try RevocationList(der: try draft.der(key), authority: authority)
        #expect(list.count == 3)
        #expect(list.revoked(.init(bytes: [0x42])) == WallTime(rfc3339: "2026-02-28T12:00:00Z"))
        #expect(
            list.revoked(.init(bytes: [0xFF, 0x01])) != nil,
            "a number is the same with and without a leading zero"
        )
        #expect(list.revoked(.init(bytes: [0x00, 0x42])) != nil)
        #expect(list.revoked(serial: "ff01") != nil)
        #expect(list.revoked(.init(bytes: [0x43])) == nil)
        #expect(list.thisUpdate == WallTime(rfc3339: "2026-03-01T12:00:00Z"))
        #expect(list.nextUpdate == WallTime(rfc3339: "2036-03-01T12:00:00Z"))
        #expect(list.number == RevocationListNumber(5))
    }

    @Test func `a list may be empty, of version 1, and without a next update`() throws {
        var draft = draft
        draft.entries = []
        #expect(try parseError(draft) == nil)
        draft.version = nil
        draft.extensions = []
        draft.nextUpdate = nil
        #expect(try parseError(draft) == nil)
        draft.entries = [([0x01], [])]
        draft.thisUpdate = "20260301120000Z"
        #expect(try parseError(draft) == nil)
    }

    @Test func `reasons and invalidity dates are ignored`() throws {
        var draft = draft
        let reason = Certificate.Extension(oid: [2, 5, 29, 21], critical: false, value: [0x0A, 0x01, 0x01])
        let since = Certificate.Extension(
            oid: [2, 5, 29, 24],
            critical: false,
            value: [0x18, 0x0F] + Array("20260228120000Z".utf8)
        )
        let foreign = Certificate.Extension(oid: [1, 2, 3, 4], critical: false, value: [0x05, 0x00])
        draft.entries = [([0x42], [reason, since, foreign])]
        draft.extensions.append(foreign)
        #expect(try parseError(draft) == nil)
    }

    private static let oddities: [(String, RevocationList.ParseError, @Sendable (inout Draft) throws -> Void)] = [
        ("version 3", .malformed, { $0.version = 2 }),
        ("extensions in version 1", .malformed, { $0.version = nil }),
        (
            "entry extensions in version 1", .malformed,
            {
                $0.version = nil
                $0.extensions = []
                $0.entries = [([1], [.init(oid: [2, 5, 29, 21], critical: false, value: [0x0A, 0x01, 0x01])])]
            }
        ),
        (
            "an algorithm nobody knows", .algorithm,
            {
                $0.innerAlgorithm = [1, 2, 3]
                $0.outerAlgorithm = [1, 2, 3]
            }
        ),
        (
            "SHA-1", .algorithm,
            {
                $0.innerAlgorithm = [1, 2, 840, 113549, 1, 1, 5]
                $0.outerAlgorithm = [1, 2, 840, 113549, 1, 1, 5]
            }
        ),
        ("two algorithms", .algorithm, { $0.innerAlgorithm = [1, 2, 840, 10045, 4, 3, 3] }),
        (
            "another algorithm than that of the signature", .signature,
            {
                $0.innerAlgorithm = [1, 2, 840, 10045, 4, 3, 3]
                $0.outerAlgorithm = [1, 2, 840, 10045, 4, 3, 3]
            }
        ),
        (
            "another issuer", .issuer,
            {
                $0.issuer = try DistinguishedName([
                    .init(type: .RDNAttributeType.commonName, utf8String: "Herald Devices 1")
                ])
            }
        ),
        (
            "another key's issuer", .issuer,
            {
                let identifier = AuthorityKeyIdentifier(keyIdentifier: [1, 2, 3])
                $0.extensions.append(try .init(identifier, critical: false))
            }
        ),
        ("an empty signature", .signature, { $0.signature = { _ in [] } }),
        ("half a signature", .signature, { $0.signature = { Array($0.dropLast(8)) } }),
        ("a signature of zeros", .signature, { $0.signature = { $0.map { _ in 0 } } }),
        (
            "a delta", .partial,
            {
                $0.extensions.append(.init(oid: [2, 5, 29, 27], critical: true, value: [0x02, 0x01, 0x01]))
            }
        ),
        (
            "limited to a part", .partial,
            {
                $0.extensions.append(
                    .init(oid: [2, 5, 29, 28], critical: true, value: [0x30, 0x03, 0x81, 0x01, 0xFF])
                )
            }
        ),
        (
            "indirect", .partial,
            {
                $0.extensions.append(
                    .init(oid: [2, 5, 29, 28], critical: true, value: [0x30, 0x03, 0x84, 0x01, 0xFF])
                )
            }
        ),
        (
            "an entry of another issuer", .partial,
            {
                $0.entries = [([1], [.init(oid: [2, 5, 29, 29], critical: true, value: [0x30, 0x00])])]
            }
        ),
        (
            "an entry taken back", .partial,
            {
                $0.entries = [([1], [.init(oid: [2, 5, 29, 21], critical: false, value: [0x0A, 0x01, 0x08])])]
            }
        ),
        (
            "a critical extension", .criticalExtension,
            {
                $0.extensions.append(.init(oid: [1, 2, 3, 4], critical: true, value: [0x05, 0x00]))
            }
        ),
        (
            "a critical extension of an entry", .criticalExtension,
            {
                $0.entries = [([1], [.init(oid: [1, 2, 3, 4], critical: true, value: [0x05, 0x00])])]
            }
        ),
        ("an extension twice", .malformed, { $0.extensions.append($0.extensions[0]) }),
        ("a negative number", .malformed, { $0.extensions[0].value = [0x02, 0x01, 0x80] }),
        (
            "a number of 21 bytes", .malformed,
            {
                $0.extensions[0].value = [0x02, 0x15, 0x01] + ArraySlice(repeating: 0, count: 20)
            }
        ),
        ("a negative serial number", .malformed, { $0.entries = [([0x80], [])] }),
        ("an empty serial number", .malformed, { $0.entries = [([], [])] }),
        ("a time that is none", .malformed, { $0.thisUpdate = "261301120000Z" }),
        ("a time without its zone", .malformed, { $0.thisUpdate = "2603011200000" }),
    ]

    @Test(arguments: oddities.indices)
    func `an invalid list is refused, although it is signed`(index: Int) throws {
        let (name, expected, spoil) = Self.oddities[index]
        var draft = draft
        try spoil(&draft)
        #expect(try parseError(draft) == expected, "\(name)")
    }

    @Test func `a list of another authority is refused, also under this one's name`() throws {
        let forger = Certificate.PrivateKey(P256.Signing.PrivateKey())
        #expect(throws: RevocationList.ParseError.signature) {
            try RevocationList(der: try draft.der(forger), authority: authority)
        }
        #expect(throws: RevocationList.ParseError.issuer) {
            try RevocationList(der: try draft.der(key), authority: trust.folder.providerAuthority)
        }
    }

    @Test func `a truncated list, or one with trailing bytes, is refused`() throws {
        let der = try draft.der(key)
        for length in 0..<der.count {
            #expect(throws: RevocationList.ParseError.self) {
                try RevocationList(der: Array(der[..<length]), authority: authority)
            }
        }
        #expect(throws: RevocationList.ParseError.malformed) {
            try RevocationList(der: der + [0], authority: authority)
        }
    }

    @Test func `a list with any bit changed is refused`() throws {
        let der = try draft.der(key)
        for index in der.indices {
            var changed = der
            changed[index] ^= 0x10
            #expect(throws: RevocationList.ParseError.self, "byte \(index)") {
                try RevocationList(der: changed, authority: authority)
            }
        }
    }

    @Test func `list numbers are compared as numbers`() {
        #expect(RevocationListNumber(255) < RevocationListNumber(256))
        #expect(RevocationListNumber(0) < RevocationListNumber(1))
        #expect(!(RevocationListNumber(256) < RevocationListNumber(256)))
        #expect(RevocationListNumber(.max) > RevocationListNumber(1))
    }
}
