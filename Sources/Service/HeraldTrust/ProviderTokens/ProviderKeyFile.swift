import Crypto
import Foundation
import HeraldIdentity
import HeraldModel

/// A provider key as its file has it.
package struct ProviderKeyRecord: Hashable, Sendable, Codable {
    package let id: String
    let team: String
    let topics: [String]
    let environments: [String]
    /// SubjectPublicKeyInfo in PEM, as `openssl ec -pubout` prints it.
    let publicKey: String
    let created: String
    package var revoked: String?

    package init(_ key: ProviderKey) {
        id = key.id
        team = key.team
        topics = key.topics.map(\.name)
        environments = key.environments.map(\.rawValue).sorted()
        publicKey = key.publicKey.pemRepresentation
        created = key.created.rfc3339
        revoked = key.revoked?.rfc3339
    }

    /// nil if the record is invalid.
    fileprivate var key: ProviderKey? {
        let topics = topics.compactMap { Topic($0) }
        let environments = Set(environments.compactMap(PushEnvironment.init(rawValue:)))
        let revoked = revoked.flatMap(WallTime.init(rfc3339:))
        guard ProviderToken.isIdentifier(id), ProviderToken.isIdentifier(team), topics.count == self.topics.count,
            environments.count == self.environments.count, !environments.isEmpty,
            let publicKey = try? P256.Signing.PublicKey(pemRepresentation: publicKey),
            let created = WallTime(rfc3339: created), (revoked == nil) == (self.revoked == nil)
        else { return nil }
        return ProviderKey(
            id: id,
            team: team,
            topics: topics,
            environments: environments,
            publicKey: publicKey,
            created: created,
            revoked: revoked
        )
    }
}

/// The content of `provider-keys.json`: every provider key, with the revoked ones.
struct ProviderKeyFile: Codable {
    private(set) var keys: [ProviderKeyRecord]

    init(_ keys: [ProviderKey]) {
        self.keys = keys.map(ProviderKeyRecord.init)
    }

    init(records: [ProviderKeyRecord]) {
        keys = records
    }

    /// Reads the file's content.
    /// - Throws: ``TrustError/Code/damaged`` for any invalid record, because a wrong scope could give access.
    init(json: [UInt8]) throws {
        guard let file = try? JSONDecoder().decode(ProviderKeyFile.self, from: Data(json)) else {
            throw Self.damaged("it is not a list of keys")
        }
        self = file
    }

    /// Reads the keys of the file's content.
    /// - Throws: ``TrustError/Code/damaged``.
    static func keys(json: [UInt8]) throws -> [ProviderKey] {
        var seen: Set<String> = []
        return try ProviderKeyFile(json: json).keys.map { record in
            guard let key = record.key, seen.insert(key.id).inserted else {
                throw damaged("the key \(record.id.prefix(16)) is invalid")
            }
            return key
        }
    }

    func json() throws -> [UInt8] {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .prettyPrinted, .withoutEscapingSlashes]
        return Array(try encoder.encode(self)) + [UInt8(ascii: "\n")]
    }

    private static func damaged(_ reason: String) -> TrustError {
        TrustError(.damaged, "trust/provider-keys.json is damaged (\(reason)): \(TrustError.copyFromBackup)")
    }
}
