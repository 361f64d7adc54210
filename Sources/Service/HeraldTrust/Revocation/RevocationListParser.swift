import HeraldModel
import SwiftASN1
import X509

/// Parses revocation lists (DER) and checks their signature.
enum RevocationListParser {
    private typealias ParseError = RevocationList.ParseError

    private enum Extension {
        static let listNumber: ASN1ObjectIdentifier = [2, 5, 29, 20]
        static let reasonCode: ASN1ObjectIdentifier = [2, 5, 29, 21]
        static let invalidityDate: ASN1ObjectIdentifier = [2, 5, 29, 24]
        static let deltaIndicator: ASN1ObjectIdentifier = [2, 5, 29, 27]
        static let issuingDistributionPoint: ASN1ObjectIdentifier = [2, 5, 29, 28]
        static let certificateIssuer: ASN1ObjectIdentifier = [2, 5, 29, 29]
        static let authorityKeyIdentifier: ASN1ObjectIdentifier = [2, 5, 29, 35]
    }

    /// Parses a list and checks that the authority signed it.
    static func parse(
        der: [UInt8],
        authority: CertificateAuthority
    ) throws(RevocationList.ParseError) -> RevocationList {
        let parsed: (list: ASN1Node, algorithm: ASN1ObjectIdentifier, signature: ASN1BitString)
        do {
            parsed = try DER.sequence(try DER.parse(der), identifier: .sequence) { nodes in
                guard let list = nodes.next() else { throw ParseError.malformed }
                return (list, try algorithm(&nodes), try ASN1BitString(derEncoded: &nodes))
            }
            guard let algorithm = SignatureAlgorithms.algorithm(parsed.algorithm), parsed.signature.paddingBits == 0
            else {
                throw ParseError.algorithm
            }
            let body = try body(parsed.list)
            guard body.algorithm == parsed.algorithm else { throw ParseError.algorithm }
            guard body.issuer == authority.certificate.subject else { throw ParseError.issuer }
            if let expected = authority.keyIdentifier, let named = body.authorityKey, named != expected {
                throw ParseError.issuer
            }
            // A forged list of any size costs one parse and one signature check.
            guard
                authority.certificate.publicKey.isValidSignature(
                    parsed.signature.bytes,
                    for: parsed.list.encodedBytes,
                    signatureAlgorithm: algorithm
                )
            else { throw ParseError.signature }
            return RevocationList(
                thisUpdate: body.thisUpdate,
                nextUpdate: body.nextUpdate,
                number: body.number,
                entries: body.entries
            )
        } catch let error as ParseError {
            throw error
        } catch {
            throw .malformed
        }
    }

    private struct Body {
        var algorithm: ASN1ObjectIdentifier
        var issuer: DistinguishedName
        var thisUpdate: WallTime
        var nextUpdate: WallTime?
        var number: RevocationListNumber?
        var authorityKey: ArraySlice<UInt8>?
        var entries: [ArraySlice<UInt8>: WallTime] = [:]
    }

    /// Parses `TBSCertList` (RFC 5280 §5.1).
    private static func body(_ node: ASN1Node) throws -> Body {
        try DER.sequence(node, identifier: .sequence) { nodes in
            var rest = nodes
            var isVersion2 = false
            if let first = rest.next(), first.identifier == .integer {
                guard try Int(derEncoded: first) == 1 else { throw ParseError.malformed }
                isVersion2 = true
                nodes = rest
            }
            let algorithm = try algorithm(&nodes)
            guard let issuer = nodes.next() else { throw ParseError.malformed }
            var body = Body(
                algorithm: algorithm,
                issuer: try DistinguishedName(derEncoded: issuer),
                thisUpdate: try moment(nodes.next())
            )
            rest = nodes
            if let next = rest.next(), next.identifier == .utcTime || next.identifier == .generalizedTime {
                body.nextUpdate = try moment(next)
                nodes = rest
            }
            rest = nodes
            if let list = rest.next(), list.identifier == .sequence {
                body.entries = try entries(list, mayHaveExtensions: isVersion2)
                nodes = rest
            }
            try DER.optionalExplicitlyTagged(&nodes, tagNumber: 0, tagClass: .contextSpecific) { node in
                guard isVersion2 else { throw ParseError.malformed }
                try readExtensions(node, into: &body)
            }
            return body
        }
    }

    private static func entries(_ node: ASN1Node, mayHaveExtensions: Bool) throws -> [ArraySlice<UInt8>: WallTime] {
        var entries: [ArraySlice<UInt8>: WallTime] = [:]
        try DER.sequence(node, identifier: .sequence) { nodes in
            while let item = nodes.next() {
                try DER.sequence(item, identifier: .sequence) { fields in
                    let serial = try ArraySlice<UInt8>(derEncoded: &fields)
                    let since = try moment(fields.next())
                    if let extensions = fields.next() {
                        guard mayHaveExtensions else { throw ParseError.malformed }
                        try checkEntry(extensions)
                    }
                    entries[SerialNumberText.normal(serial)] = since
                }
            }
        }
        return entries
    }

    private static func readExtensions(_ node: ASN1Node, into body: inout Body) throws {
        for one in try extensions(node) {
            switch one.oid {
            case Extension.listNumber:
                let magnitude = try ArraySlice<UInt8>(derEncoded: one.value)
                guard let number = RevocationListNumber(magnitude: magnitude) else { throw ParseError.malformed }
                body.number = number
            case Extension.authorityKeyIdentifier:
                body.authorityKey = try AuthorityKeyIdentifier(one).keyIdentifier
            case Extension.deltaIndicator, Extension.issuingDistributionPoint:
                throw ParseError.partial
            default:
                guard !one.critical else { throw ParseError.criticalExtension }
            }
        }
    }

    private static func checkEntry(_ node: ASN1Node) throws {
        for one in try extensions(node) {
            switch one.oid {
            case Extension.certificateIssuer:
                throw ParseError.partial
            case Extension.reasonCode:
                let reason = try DER.parse(one.value)
                // Only delta lists have removeFromCRL (8).
                guard reason.identifier == .enumerated, case .primitive(let value) = reason.content, value != [8] else {
                    throw ParseError.partial
                }
            case Extension.invalidityDate:
                break
            default:
                guard !one.critical else { throw ParseError.criticalExtension }
            }
        }
    }

    /// Parses extensions, each of which may appear only once.
    private static func extensions(_ node: ASN1Node) throws -> Certificate.Extensions {
        try Certificate.Extensions(DER.sequence(of: Certificate.Extension.self, identifier: .sequence, rootNode: node))
    }

    /// Parses the name of an `AlgorithmIdentifier`, whose parameters must be absent or NULL.
    private static func algorithm(_ nodes: inout ASN1NodeCollection.Iterator) throws -> ASN1ObjectIdentifier {
        guard let node = nodes.next() else { throw ParseError.malformed }
        return try DER.sequence(node, identifier: .sequence) { fields in
            let name = try ASN1ObjectIdentifier(derEncoded: &fields)
            if let parameters = fields.next() { _ = try ASN1Null(derEncoded: parameters) }
            return name
        }
    }

    private static func moment(_ node: ASN1Node?) throws -> WallTime {
        guard let node else { throw ParseError.malformed }
        let time =
            if node.identifier == .utcTime {
                try GeneralizedTime(UTCTime(derEncoded: node))
            } else {
                try GeneralizedTime(derEncoded: node)
            }
        guard let moment = time.moment else { throw ParseError.malformed }
        return moment
    }
}
