package import Crypto
import Foundation
import SwiftASN1
import X509

/// The content of a file of certificates and keys, in any of the shapes in which people have it.
///
/// RFC 7468 §2 permits text around the blocks. Tools and people do the rest: base64 in one line or of any width, spaces, `\n`
/// as two characters, headers (RFC 1421), a byte order mark, UTF-16, DER, or the base64 without its BEGIN and END.
package struct PEMFile: Sendable {
    /// One block, or the whole of a DER file.
    package struct Block: Sendable {
        /// The word of the BEGIN line: `CERTIFICATE`.
        package let label: String
        /// nil if the text between BEGIN and END is not base64.
        package let der: [UInt8]?
        /// Whether its header says that it is encrypted (RFC 1421 §4.6.1.1).
        var isEncrypted = false
    }

    package let blocks: [Block]

    /// Reads the blocks.
    /// - Throws: ``PEMFault`` for an empty file, one without a block, and one that is cut off.
    package init(_ bytes: [UInt8]) throws(PEMFault) {
        if let label = PEMFile.label(der: bytes) {
            blocks = [Block(label: label, der: bytes)]
            return
        }
        // A byte order mark is text before BEGIN. Without zeros, so is one of UTF-16, whose other bytes are then ASCII.
        let text = bytes.contains(0) ? bytes.filter { $0 != 0 } : bytes
        blocks = try PEMFile.blocks(text[...])
        if blocks.isEmpty {
            let isBlank = text.allSatisfy { PEMFile.isSpace($0) }
            throw PEMFault(
                isBlank ? "it is empty" : "it is not PEM, which begins with a line like -----BEGIN CERTIFICATE-----"
            )
        }
    }

    // MARK: - Blocks

    private static let begin = Array("-----BEGIN ".utf8)
    private static let end = Array("-----END ".utf8)
    private static let dashes = Array("-----".utf8)
    private static let longestLabel = 64

    private static func blocks(_ text: ArraySlice<UInt8>) throws(PEMFault) -> [Block] {
        var blocks: [Block] = []
        var rest = text
        while let start = next(begin, in: rest) {
            rest = rest[start.upperBound...]
            guard let (name, body) = label(rest) else { continue }
            rest = body
            guard let stop = next(end, in: rest), next(begin, in: rest[..<stop.lowerBound]) == nil else {
                throw PEMFault("it is cut off: its block \(name) has no END line")
            }
            let content = rest[..<stop.lowerBound]
            rest = rest[stop.upperBound...]
            guard let (last, after) = label(rest) else {
                throw PEMFault("it is cut off: its block \(name) has no END line")
            }
            guard last == name else {
                throw PEMFault("it is damaged: its block \(name) ends with the END line of another one")
            }
            rest = after
            let isEncrypted = content.contains(colon) && String(decoding: content, as: UTF8.self).contains("ENCRYPTED")
            blocks.append(Block(label: name, der: base64(content), isEncrypted: isEncrypted))
        }
        guard blocks.isEmpty, let der = base64(text), let name = label(der: der) else { return blocks }
        return [Block(label: name, der: der)]
    }

    /// The label up to its dashes, and what follows them.
    private static func label(_ text: ArraySlice<UInt8>) -> (String, ArraySlice<UInt8>)? {
        guard let stop = next(dashes, in: text.prefix(longestLabel)) else { return nil }
        let label = text[..<stop.lowerBound]
        guard label.allSatisfy({ (0x20...0x7E).contains($0) }) else { return nil }
        return (String(decoding: label, as: UTF8.self), text[stop.upperBound...])
    }

    /// The first place of a mark that begins with a dash, which base64 does not have.
    private static func next(_ mark: [UInt8], in bytes: ArraySlice<UInt8>) -> Range<Int>? {
        var rest = bytes
        while let dash = rest.firstIndex(of: UInt8(ascii: "-")) {
            if rest[dash...].starts(with: mark) { return dash..<dash + mark.count }
            rest = rest[(dash + 1)...]
        }
        return nil
    }

    private static let colon = UInt8(ascii: ":")

    private static func isSpace(_ byte: UInt8) -> Bool { byte == 0x20 || (0x09...0x0D).contains(byte) }

    /// Decodes the text between BEGIN and END, without its headers; nil if it is not base64.
    private static func base64(_ text: ArraySlice<UInt8>) -> [UInt8]? {
        var plain: [UInt8] = []
        plain.reserveCapacity(text.count + 2)
        // A header is a line with a colon.
        let lines =
            text.contains(colon) ? text.split { $0 == 0x0A || $0 == 0x0D }.filter { !$0.contains(colon) } : [text]
        for line in lines {
            var isEscaped = false
            for byte in line where !isSpace(byte) {
                if isEscaped {
                    guard byte == UInt8(ascii: "n") || byte == UInt8(ascii: "r") else { return nil }
                    isEscaped = false
                } else if byte == UInt8(ascii: "\\") {
                    isEscaped = true
                } else {
                    plain.append(byte)
                }
            }
        }
        while !plain.count.isMultiple(of: 4), plain.count % 4 != 1 { plain.append(UInt8(ascii: "=")) }
        return plain.isEmpty ? nil : Data(base64Encoded: Data(plain)).map { Array($0) }
    }

    /// The label of a block with this DER; nil for other bytes.
    private static func label(der: [UInt8]) -> String? {
        guard der.first == 0x30, let element = DERElement(der), element.encoded.count == der.count else { return nil }
        return element.structure.label
    }

    /// The text with one block.
    ///
    /// `PEMDocument.pemString` counts the characters that are left at each line: a revocation list of 100,000 would take
    /// it minutes.
    package static func text(_ label: String, der: [UInt8]) -> String {
        let lines = Data(der).base64EncodedString(options: [.lineLength64Characters, .endLineWithLineFeed])
        return "-----BEGIN \(label)-----\n\(lines)\n-----END \(label)-----\n"
    }
}

/// The certificates, requests and keys of a file, and what is wrong where one is missing.
extension PEMFile {
    // MARK: - Certificates, requests, lists

    /// The certificates, at least one, in DER.
    /// - Throws: ``PEMFault``.
    package func certificates() throws(PEMFault) -> [[UInt8]] {
        let found = blocks.filter { Self.certificateLabels.contains($0.label) }
        guard !found.isEmpty else { throw missing("certificate") }
        return try found.map { block throws(PEMFault) in
            let der = try der(of: block)
            // TLS reads more certificates than this library: it is the structure that counts. OpenSSL's trusted certificates
            // have more after the certificate.
            guard let element = DERElement(der), element.structure == .certificate,
                element.encoded.count == der.count || block.label == "TRUSTED CERTIFICATE"
            else { throw Self.unreadable(block) }
            return element.encoded
        }
    }

    /// The certificates alone, as PEM that every tool reads.
    /// - Throws: ``PEMFault``.
    package func certificateText() throws(PEMFault) -> [UInt8] {
        PEMFile.text(certificates: try certificates())
    }

    /// Certificates as PEM.
    package static func text(certificates: [[UInt8]]) -> [UInt8] {
        Array(certificates.map { text("CERTIFICATE", der: $0) }.joined().utf8)
    }

    /// The certificates and their private key, whatever their order in the file.
    /// - Returns: Each certificate in DER: that of the key, then each one's issuer, then all others.
    /// - Throws: ``PEMFault``, also if the key belongs to none of them.
    package func identity() throws(PEMFault) -> (certificates: [[UInt8]], key: PEMPrivateKey) {
        let (certificates, key) = (try certificates(), try privateKey())
        // TLS judges a key of a kind that the library does not know.
        guard let publicKey = key.certificateKey?.publicKey else { return (certificates, key) }
        guard let chain = CertificateOrder.chain(certificates, of: publicKey) else {
            let whose =
                certificates.count == 1 ? "another certificate" : "none of its \(certificates.count) certificates"
            throw PEMFault("its private key belongs to \(whose): put a key and its own certificate into it")
        }
        return (chain, key)
    }

    /// The only certificate signing request, in DER.
    /// - Throws: ``PEMFault``.
    package func request() throws(PEMFault) -> [UInt8] {
        try only(["CERTIFICATE REQUEST", "NEW CERTIFICATE REQUEST"], "certificate signing request")
    }

    /// The only revocation list, in DER.
    /// - Throws: ``PEMFault``.
    package func revocationList() throws(PEMFault) -> [UInt8] {
        try only(["X509 CRL"], "revocation list")
    }

    private static let certificateLabels = ["CERTIFICATE", "X509 CERTIFICATE", "TRUSTED CERTIFICATE"]

    // MARK: - Keys

    /// Whether there is a private key, of any kind.
    package var hasPrivateKey: Bool { blocks.contains(where: \.isPrivateKey) }

    /// The only private key.
    /// - Throws: ``PEMFault``.
    package func privateKey() throws(PEMFault) -> PEMPrivateKey {
        let keys = blocks.filter(\.isPrivateKey)
        guard let block = keys.first else { throw missing("private key") }
        guard keys.count == 1 else { throw PEMFault("it has two private keys: leave one") }
        guard !block.isEncrypted, block.label != "ENCRYPTED PRIVATE KEY" else { throw Self.encrypted }
        guard block.label != "OPENSSH PRIVATE KEY" else {
            throw PEMFault("its key is one of OpenSSH: convert it with `ssh-keygen -p -m PKCS8 -f KEY`")
        }
        guard let element = DERElement(try der(of: block)) else { throw Self.unreadable(block) }
        guard element.structure != .encryptedKey else { throw Self.encrypted }
        let curve = blocks.first { $0.label == "EC PARAMETERS" }?.der
        guard let key = PEMPrivateKey.read(element, curve: curve) else { throw Self.unreadable(block) }
        return key
    }

    /// The only private key, of P-256.
    /// - Throws: ``PEMFault``.
    package func signingKey() throws(PEMFault) -> P256.Signing.PrivateKey {
        let key = try privateKey()
        guard key.algorithm == .p256, let own = try? P256.Signing.PrivateKey(derRepresentation: key.der) else {
            throw Self.needsP256(key.algorithm)
        }
        return own
    }

    /// The only public key, of P-256.
    /// - Throws: ``PEMFault``, also if there is a private key.
    package func verificationKey() throws(PEMFault) -> P256.Signing.PublicKey {
        guard !hasPrivateKey else {
            throw PEMFault(
                "it has a private key, which belongs nowhere but with the provider: make another one, and send its public key"
            )
        }
        let der = try only(["PUBLIC KEY", "EC PUBLIC KEY", "RSA PUBLIC KEY"], "public key")
        // SubjectPublicKeyInfo (RFC 5480 §2): algorithm and point.
        guard let members = DERElement(der)?.members, let last = members.last else {
            throw PEMFault("its public key cannot be read")
        }
        // PKCS#1 has the numbers of RSA alone.
        let algorithm = members.first?.identifier == .integer ? .rsa : KeyAlgorithm(members.first)
        guard algorithm == .p256 else { throw Self.needsP256(algorithm) }
        let point = (try? ASN1BitString(derEncoded: last))?.bytes ?? []
        let key =
            point.count == 33
            ? try? P256.Signing.PublicKey(compressedRepresentation: point)
            : try? P256.Signing.PublicKey(x963Representation: point)
        guard let key else { throw PEMFault("its public key cannot be read") }
        return key
    }

    // MARK: - Faults

    private static let encrypted = PEMFault("its key is encrypted: decrypt it with `openssl pkey -in KEY -out NEWKEY`")

    private static func needsP256(_ algorithm: KeyAlgorithm) -> PEMFault {
        let advice = algorithm == .explicitCurve ? ": convert it with `openssl ec -in KEY -param_enc named_curve`" : ""
        return PEMFault("its key is of \(algorithm), and one of P-256 is needed\(advice)")
    }

    private static func unreadable(_ block: Block) -> PEMFault {
        PEMFault("its block \(block.label) cannot be read")
    }

    private func missing(_ wanted: String) -> PEMFault {
        let labels = Set(blocks.map(\.label))
        if labels.contains("PKCS12") {
            return PEMFault("it is a PKCS#12 file: convert it with `openssl pkcs12 -in FILE -nodes -out FILE.pem`")
        }
        if labels.contains("PKCS7") {
            return PEMFault("it is a PKCS#7 file: convert it with `openssl pkcs7 -print_certs -in FILE -out FILE.pem`")
        }
        return PEMFault("it has no \(wanted), but only \(labels.sorted().joined(separator: ", "))")
    }

    private func only(_ labels: [String], _ wanted: String) throws(PEMFault) -> [UInt8] {
        let found = blocks.filter { labels.contains($0.label) }
        guard let block = found.first else { throw missing(wanted) }
        guard found.count == 1 else { throw PEMFault("it has \(found.count) blocks \(block.label): leave one") }
        return try der(of: block)
    }

    private func der(of block: Block) throws(PEMFault) -> [UInt8] {
        guard let der = block.der else { throw PEMFault("it is damaged: its block \(block.label) is not base64") }
        return der
    }
}

extension PEMFile.Block {
    var isPrivateKey: Bool { label.hasSuffix("PRIVATE KEY") }
}

/// The reason for which a file of certificates and keys cannot be used, and what to do: a sentence about "it".
package struct PEMFault: Error, Hashable, CustomStringConvertible {
    package let description: String

    package init(_ description: String) {
        self.description = description
    }

    /// The fault of a certificate or key that TLS refuses.
    package static func unusable(_ what: String) -> PEMFault {
        PEMFault("its \(what) is damaged, or of a kind that TLS does not take")
    }
}
