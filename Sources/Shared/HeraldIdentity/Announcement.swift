package import Crypto
import Foundation
package import HeraldModel

/// The authorities and the addresses of a service, as it announces them to its devices.
///
/// It travels as a JSON Web Signature (RFC 7515 §3.1, ES256). The signature makes it trustworthy, not the connection. A
/// device pins the key at its activation, and takes what that key has signed, if it is newer than what it has.
package struct Announcement: Hashable, Sendable {
    /// The reason why a text is not an announcement that a device may take.
    package enum Fault: String, Error, Hashable, Sendable {
        case malformed = "the announcement cannot be read"
        case foreign = "the announcement is not signed with the key that this device knows"
    }

    /// The longest text, in bytes; a device takes packets of 16 KiB.
    package static let maximumBytes = 12_000

    /// Rises with each announcement; the time of its signature in milliseconds since 1970, or more.
    package let version: Int64
    /// The version from which on a device knows every authority and every address of this announcement.
    package let complete: Int64
    /// The service's addresses, the preferred one first; empty if it announces none.
    package let addresses: [ServiceEndpoint]
    /// The certificates (DER) of the authorities.
    package let authorities: [[UInt8]]

    /// Makes the announcement after a former one; nil for the first.
    package init(
        version: Int64,
        addresses: [ServiceEndpoint],
        authorities: [[UInt8]],
        after former: Announcement? = nil
    ) {
        self.version = version
        let isNothingNew = former.map {
            Set($0.addresses).isSuperset(of: addresses) && Set($0.authorities).isSuperset(of: authorities)
        }
        complete = isNothingNew == true ? former?.complete ?? version : version
        self.addresses = addresses
        self.authorities = authorities
    }

    // MARK: - The signed text

    private struct Header: Codable {
        /// A public key of P-256 (RFC 7518 §6.2.1).
        struct Key: Codable {
            var kty = "EC"
            var crv = "P-256"
            let x: String
            let y: String
        }

        var alg = "ES256"
        let jwk: Key
    }

    private struct Content: Codable {
        let version: Int64
        let complete: Int64
        let addresses: [ServiceEndpoint]
        let authorities: [Data]
    }

    /// The announcement as a signed text, with the public key in its header.
    package func signed(with key: P256.Signing.PrivateKey) throws -> String {
        let point = Array(key.publicKey.rawRepresentation)
        let header = Header(jwk: .init(x: Base64.encode(Array(point[..<32])), y: Base64.encode(Array(point[32...]))))
        let content = Content(
            version: version,
            complete: complete,
            addresses: addresses,
            authorities: authorities.map { Data($0) }
        )
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        let text = try [encoder.encode(header), encoder.encode(content)].map { Base64.encode(Array($0)) }
            .joined(separator: ".")
        return text + "." + Base64.encode(Array(try key.signature(for: Array(text.utf8)).rawRepresentation))
    }

    /// Reads a text that a key must have signed; nil for the key in its header.
    /// - Throws: ``Fault``.
    package init(_ text: String, signedBy key: P256.Signing.PublicKey?) throws(Fault) {
        let parts = text.split(separator: ".", omittingEmptySubsequences: false)
        guard text.utf8.count <= Self.maximumBytes, parts.count == 3, let content = Self.bytes(parts[1]),
            let raw = Self.bytes(parts[2]), let signature = try? P256.Signing.ECDSASignature(rawRepresentation: raw)
        else { throw .malformed }
        let signer: P256.Signing.PublicKey? = if let key { key } else { try Self.key(of: text) }
        guard let signer,
            signer.isValidSignature(
                signature,
                for: Array(text.utf8.prefix(parts[0].utf8.count + 1 + parts[1].utf8.count))
            )
        else { throw .foreign }
        guard let content = try? JSONDecoder().decode(Content.self, from: Data(content)), content.version > 0,
            content.addresses.allSatisfy(\.isValid), !content.authorities.isEmpty
        else { throw .malformed }
        (version, complete) = (content.version, content.complete)
        addresses = content.addresses
        authorities = content.authorities.map { Array($0) }
    }

    /// The public key in the header of a signed text.
    package static func key(of text: String) throws(Fault) -> P256.Signing.PublicKey? {
        guard let header = bytes(text.prefix { $0 != "." }),
            let key = (try? JSONDecoder().decode(Header.self, from: Data(header)))?.jwk,
            let x = bytes(key.x[...]), let y = bytes(key.y[...])
        else { throw .malformed }
        return try? P256.Signing.PublicKey(rawRepresentation: x + y)
    }

    private static func bytes(_ text: Substring) -> [UInt8]? {
        var text = String(text)
        return text.withUTF8 { Base64.decode(UnsafeRawBufferPointer($0)) }
    }
}

extension ServiceEndpoint {
    fileprivate var isValid: Bool {
        !host.isEmpty && (1...65_535).contains(port) && (1...65_535).contains(activation)
    }
}
