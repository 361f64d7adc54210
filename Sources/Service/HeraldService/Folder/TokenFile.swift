import Foundation

/// Reads a bearer token from a file.
///
/// A wrong path may name a private key. So no error shows what the file holds, and what is not a token gets no further: a
/// library that refuses it as a field of a header would show it.
package enum TokenFile {
    /// Longest token, in bytes.
    package static let maximumBytes = 4096

    /// The token that a file holds now.
    /// - Throws: ``CommandError`` if others may read the file, or if it holds anything but one token.
    package static func read(_ path: String) throws -> String {
        try token(in: try SafeFile.read(path, isSecret: true), path)
    }

    /// The token of a file's content, without a byte order mark and the space around it.
    package static func token(in bytes: [UInt8], _ path: String) throws -> String {
        func wrong(_ words: String) -> CommandError {
            CommandError(.configuration, "\(path) is not the file of a token: \(words)")
        }
        let token = String(decoding: bytes, as: UTF8.self)
            .trimmingCharacters(in: .whitespacesAndNewlines.union(["\u{FEFF}"]))
        guard !token.isEmpty else { throw wrong("it is empty") }
        guard !token.contains("-----BEGIN") else {
            throw wrong("it holds a key or a certificate; name the file that holds the token alone")
        }
        guard !token.contains(where: \.isWhitespace) else { throw wrong("it holds more than one word") }
        guard token.utf8.allSatisfy({ (0x21...0x7E).contains($0) }) else {
            throw wrong("a token has only the visible characters of ASCII")
        }
        guard token.utf8.count <= maximumBytes else { throw wrong("it is longer than \(maximumBytes) bytes") }
        return token
    }
}
