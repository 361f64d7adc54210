import Foundation
package import HeraldModel

/// A named bearer token for a tool.
struct ConsoleToken: Codable, Hashable, Sendable {
    let id: String
    let name: String
    let role: ConsoleRole
    /// SHA-256 of the token, in hexadecimal.
    let sha256: String
    /// Seconds since 1970.
    let created: Int64
    let expires: Int64
    /// Identifier of the token with which it was made, whose end ends it too; nil for one that an operator made.
    var maker: String?

    var member: ConsoleMember {
        ConsoleMember(name: name, role: role, ground: .token(id), ends: WallTime(seconds: expires))
    }

    var isSound: Bool {
        SecretDigest(hexadecimal: sha256) != nil && !id.isEmpty && ConsoleTokens.isName(name)
    }
}

/// The named tokens of a service, as the file `trust/console.tokens` keeps them.
package struct ConsoleTokens: Sendable {
    /// More are refused.
    package static let maximum = 256
    /// Range of the days that a token lasts.
    package static let days = 1...3650

    private(set) var tokens: [ConsoleToken] = []

    package init() {}

    /// The content of the file; nil if it is damaged.
    package init?(json bytes: [UInt8]) {
        guard let file = try? JSONDecoder().decode(File.self, from: Data(bytes)), file.version == 1,
            file.tokens.count <= Self.maximum, file.tokens.allSatisfy(\.isSound)
        else { return nil }
        tokens = file.tokens
    }

    /// The content for the file.
    package func json() throws -> [UInt8] {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .prettyPrinted]
        return Array(try encoder.encode(File(version: 1, tokens: tokens))) + [UInt8(ascii: "\n")]
    }

    /// The token of a digest; nil if it is unknown or too old.
    func token(_ digest: SecretDigest, at now: WallTime) -> ConsoleToken? {
        tokens.first { $0.sha256 == digest.hexadecimal && $0.expires > now.milliseconds / 1000 }
    }

    /// The names of the tokens that are valid.
    package func valid(at now: WallTime) -> [String] {
        tokens.filter { has($0.id, at: now) }.map(\.name).sorted()
    }

    /// Whether a token is valid.
    func has(_ id: String, at now: WallTime) -> Bool {
        tokens.contains { $0.id == id && $0.expires > now.milliseconds / 1000 }
    }

    /// Adds a token; those that have ended make room.
    /// - Throws: ``AdminError`` if the name is taken, or there are too many.
    mutating func add(_ token: ConsoleToken, at now: WallTime) throws {
        tokens.removeAll { $0.expires <= now.milliseconds / 1000 }
        guard !tokens.contains(where: { $0.name == token.name }) else {
            throw AdminError(
                .conflict,
                "there is a token named \(token.name): choose another name, or revoke it first"
            )
        }
        guard tokens.count < Self.maximum else {
            throw AdminError(.conflict, "there are \(Self.maximum) tokens: revoke one that is not used")
        }
        tokens.append(token)
    }

    /// Removes a token, and those that were made with it.
    /// - Returns: All of them, that token first.
    /// - Throws: ``AdminError`` if there is none.
    mutating func remove(_ id: String) throws -> [ConsoleToken] {
        var removed = tokens.filter { $0.id == id }
        guard !removed.isEmpty else {
            throw AdminError(.notFound, "there is no token \(id): see `herald console tokens`")
        }
        var next = removed[...]
        while let maker = next.popFirst() {
            let made = tokens.filter { $0.maker == maker.id && !removed.contains($0) }
            removed += made
            next += made
        }
        tokens.removeAll { removed.contains($0) }
        return removed
    }

    /// Whether a text can name a token or a session.
    package static func isName(_ text: String) -> Bool {
        !text.isEmpty && text.utf8.count <= 64
            && text.unicodeScalars.allSatisfy { $0.value >= 0x20 && $0.value != 0x7F && !$0.properties.isBidiControl }
            && text.trimmingCharacters(in: .whitespaces) == text
    }

    private struct File: Codable {
        let version: Int
        let tokens: [ConsoleToken]
    }
}
