import Foundation
import SwiftASN1

/// PEM blocks of one kind.
enum PEMText {
    /// The DER of the only block of a text.
    /// - Throws: ``TrustError/Code/damaged`` for several blocks, or another kind.
    static func only(_ kind: String, in text: [UInt8]) throws -> [UInt8] {
        guard let text = String(validating: text, as: UTF8.self), let document = try? PEMDocument(pemString: text),
            document.discriminator == kind
        else { throw TrustError(.damaged, "expected exactly one PEM block of the kind \(kind)") }
        return document.derBytes
    }

    /// The text with one block.
    ///
    /// `PEMDocument.pemString` counts the characters that are left at each line: a revocation list of 100,000 would take
    /// it minutes.
    static func text(_ kind: String, der: [UInt8]) -> String {
        let lines = Data(der).base64EncodedString(options: [.lineLength64Characters, .endLineWithLineFeed])
        return "-----BEGIN \(kind)-----\n\(lines)\n-----END \(kind)-----\n"
    }
}
