package import Crypto
import Foundation
import HeraldIdentity
package import HeraldModel

/// A key that encrypts device tokens.
package struct TokenKey: Sendable {
    /// Number in the ring, from 1; never reused.
    package let id: UInt32
    package let created: WallTime
    /// 256 bits; nil once the key is retired.
    package fileprivate(set) var secret: SymmetricKey?
    /// Time of its retirement, from which its tokens are invalid.
    package fileprivate(set) var retired: WallTime?
}

/// The keys of device tokens: the newest encrypts, and every key that is not retired decrypts.
///
/// A rotation adds a key. Devices get tokens of the new key as they connect. The operator retires the old key when its use
/// count (``TokenSeal/usage``) no longer rises. The ring is the JSON file `token.keys`.
package struct TokenKeyRing: Sendable {
    /// The most keys that decrypt.
    ///
    /// A forged token is tried with each of them, at some 4 µs a key. Nodes of a cluster that add keys at the same moment may
    /// exceed it: twice as many are read.
    package static let maximumOpenKeys = 8

    /// Oldest first; the last one encrypts and is never retired.
    package private(set) var keys: [TokenKey]

    /// A ring with one new key.
    package init(now: WallTime) {
        keys = [TokenKey(id: 1, created: now, secret: SymmetricKey(size: .bits256))]
    }

    /// The keys that decrypt, newest first.
    package var openKeys: [TokenKey] {
        keys.reversed().filter { $0.secret != nil }
    }

    /// Adds a key, which encrypts from now on.
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

    /// Retires a key: deletes its secret, which makes its tokens invalid.
    /// - Throws: ``TrustError/Code/invalidArgument`` for the newest key, ``TrustError/Code/unknownID``, or
    ///   ``TrustError/Code/alreadyRevoked``.
    package mutating func retire(_ id: UInt32, now: WallTime) throws {
        guard let index = keys.firstIndex(where: { $0.id == id }) else {
            throw TrustError(.unknownID, "there is no token key \(id): `herald token keys` lists them")
        }
        guard index != keys.count - 1 else {
            throw TrustError(
                .invalidArgument,
                "token key \(id) makes new tokens: add another with `herald token rotate` first"
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
    /// The ring as its file has it.
    package struct Document: Hashable, Sendable, Codable {
        package struct Key: Hashable, Sendable, Codable {
            package internal(set) var id: UInt32
            let created: String
            /// 32 bytes in base64.
            var secret: String?
            var retired: String?
        }

        package internal(set) var keys: [Key]
    }

    /// Reads a ring from the content of its file.
    /// - Throws: ``TrustError/Code/damaged``.
    package init(json: [UInt8]) throws {
        guard let document = try? JSONDecoder().decode(Document.self, from: Data(json)) else {
            throw TokenKeyRing.damaged("it is not a list of keys")
        }
        try self.init(document)
    }

    /// Reads a ring from the content of its file.
    /// - Throws: ``TrustError/Code/damaged``.
    package init(_ document: Document) throws {
        guard !document.keys.isEmpty else { throw TokenKeyRing.damaged("it is not a list of keys") }
        keys = []
        for record in document.keys {
            guard let created = WallTime(rfc3339: record.created), record.id > keys.last?.id ?? 0 else {
                throw TokenKeyRing.damaged("key \(record.id) is out of order or has no date")
            }
            let retired = record.retired.flatMap(WallTime.init(rfc3339:))
            let secret = record.secret.flatMap { Data(base64Encoded: $0) }.map { SymmetricKey(data: $0) }
            guard (secret == nil) == (retired != nil), secret.map({ $0.bitCount == 256 }) ?? true else {
                throw TokenKeyRing.damaged("key \(record.id) does not have 256 bits")
            }
            keys.append(TokenKey(id: record.id, created: created, secret: secret, retired: retired))
        }
        guard keys.last?.secret != nil, openKeys.count <= 2 * Self.maximumOpenKeys else {
            throw TokenKeyRing.damaged("its newest key is retired, or it has too many keys")
        }
    }

    /// The ring as its file has it, with the secrets.
    package var document: Document {
        Document(
            keys: keys.map { key in
                Document.Key(
                    id: key.id,
                    created: key.created.rfc3339,
                    secret: key.secret.map { $0.withUnsafeBytes { Data($0) }.base64EncodedString() },
                    retired: key.retired?.rfc3339
                )
            }
        )
    }

    /// The content of the ring's file, with the secrets.
    package func json() throws -> [UInt8] {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .prettyPrinted, .withoutEscapingSlashes]
        return Array(try encoder.encode(document)) + [UInt8(ascii: "\n")]
    }

    private static func damaged(_ reason: String) -> TrustError {
        TrustError(.damaged, "trust/token.keys is damaged (\(reason)): \(TrustError.copyFromBackup)")
    }
}
