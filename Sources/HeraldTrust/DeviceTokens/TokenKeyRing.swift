package import Crypto
import Foundation
package import HeraldModel

/// One key under which device tokens are sealed.
package struct TokenKey: Sendable {
    /// Its number in the ring, from 1; never reused.
    package let id: UInt32
    package let created: WallTime
    /// 256 bits; nil once the key is retired, so that it cannot come back.
    package fileprivate(set) var secret: SymmetricKey?
    /// When it was retired; from then on the tokens under it do not open.
    package fileprivate(set) var retired: WallTime?
}

/// The keys of device tokens: the newest mints, all that are not retired open.
///
/// A rotation adds a key; devices are given tokens of the new one as they connect, and the old one is retired when its
/// use count (``TokenSeal/usage``) stays at rest. The ring is a file, `token.keys`, in JSON.
package struct TokenKeyRing: Sendable {
    /// How many keys may open tokens at once.
    ///
    /// A forged token is tried against each of them, at some 4 µs a key.
    package static let maximumOpenKeys = 8

    /// In order of age, the oldest first; the last one mints and is never retired.
    package private(set) var keys: [TokenKey]

    /// A ring with one new key.
    package init(now: WallTime) {
        keys = [TokenKey(id: 1, created: now, secret: SymmetricKey(size: .bits256))]
    }

    /// The keys that open tokens, the newest first.
    package var openKeys: [TokenKey] {
        keys.reversed().filter { $0.secret != nil }
    }

    /// Adds a key, which mints from now on.
    /// - Throws: ``TrustError/Code/invalidArgument`` if ``maximumOpenKeys`` are in use.
    package mutating func rotate(now: WallTime) throws {
        guard openKeys.count < Self.maximumOpenKeys, let last = keys.last, last.id < .max else {
            throw TrustError(
                .invalidArgument,
                "\(openKeys.count) token keys are in use already: retire the oldest before adding another"
            )
        }
        keys.append(TokenKey(id: last.id + 1, created: now, secret: SymmetricKey(size: .bits256)))
    }

    /// Ends a key: its secret is forgotten, and tokens under it open no more.
    /// - Throws: ``TrustError/Code/invalidArgument`` for the newest key, ``TrustError/Code/unknownID`` for none,
    ///   ``TrustError/Code/alreadyRevoked`` for one that is retired.
    package mutating func retire(_ id: UInt32, now: WallTime) throws {
        guard let index = keys.firstIndex(where: { $0.id == id }) else {
            throw TrustError(.unknownID, "there is no token key \(id): `herald token keys` shows them")
        }
        guard index != keys.count - 1 else {
            throw TrustError(
                .invalidArgument,
                "token key \(id) mints new tokens: add another with `herald token rotate`"
            )
        }
        if let since = keys[index].retired {
            throw TrustError(.alreadyRevoked, "token key \(id) was retired at \(since.rfc3339)")
        }
        keys[index].secret = nil
        keys[index].retired = now
    }
}

extension TokenKeyRing {
    private struct Document: Codable {
        struct Key: Codable {
            var id: UInt32
            var created: String
            var secret: String?
            var retired: String?
        }

        var keys: [Key]
    }

    /// Reads a ring from the content of its file.
    /// - Throws: ``TrustError/Code/damaged``.
    package init(json: [UInt8]) throws {
        guard let document = try? JSONDecoder().decode(Document.self, from: Data(json)), !document.keys.isEmpty else {
            throw TokenKeyRing.damaged("it is no list of keys")
        }
        keys = []
        for record in document.keys {
            guard let created = WallTime(rfc3339: record.created), record.id > keys.last?.id ?? 0 else {
                throw TokenKeyRing.damaged("key \(record.id) has no place or no date")
            }
            let retired = record.retired.flatMap(WallTime.init(rfc3339:))
            let secret = record.secret.flatMap { Data(base64Encoded: $0) }.map { SymmetricKey(data: $0) }
            guard (secret == nil) == (retired != nil), secret.map({ $0.bitCount == 256 }) ?? true else {
                throw TokenKeyRing.damaged("key \(record.id) has not 256 bits")
            }
            keys.append(TokenKey(id: record.id, created: created, secret: secret, retired: retired))
        }
        guard keys.last?.secret != nil, openKeys.count <= Self.maximumOpenKeys else {
            throw TokenKeyRing.damaged("its newest key is retired, or it has too many keys")
        }
    }

    /// The content of the ring's file; holds the secrets.
    package func json() throws -> [UInt8] {
        let document = Document(
            keys: keys.map { key in
                Document.Key(
                    id: key.id,
                    created: key.created.rfc3339,
                    secret: key.secret.map { $0.withUnsafeBytes { Data($0) }.base64EncodedString() },
                    retired: key.retired?.rfc3339
                )
            }
        )
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .prettyPrinted, .withoutEscapingSlashes]
        return Array(try encoder.encode(document)) + [UInt8(ascii: "\n")]
    }

    private static func damaged(_ what: String) -> TrustError {
        TrustError(.damaged, "the file of token keys is damaged (\(what)): restore it from a backup")
    }
}
