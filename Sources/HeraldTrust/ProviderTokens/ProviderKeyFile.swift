import Crypto
import Foundation
import HeraldModel

/// The content of `provider-keys.json`: every provider key, with the revoked ones.
struct ProviderKeyFile: Codable {
    private struct Record: Codable {
        var id: String
        var team: String
        var topics: [String]
        var environments: [String]
        /// SubjectPublicKeyInfo in PEM, as `openssl ec -pubout` prints it.
        var publicKey: String
        var created: String
        var revoked: String?
    }

    private var keys: [Record]

    init(_ keys: [ProviderKey]) {
        self.keys = keys.map { key in
            Record(
                id: key.id,
                team: key.team,
                topics: key.topics.map(\.name),
                environments: key.environments.map(\.rawValue).sorted(),
                publicKey: key.publicKey.pemRepresentation,
                created: key.created.rfc3339,
                revoked: key.revoked?.rfc3339
            )
        }
    }

    /// Reads the file's content.
    /// - Throws: ``TrustError/Code/damaged`` for any invalid record, because a wrong scope could give access.
    static func keys(json: [UInt8]) throws -> [ProviderKey] {
        guard let file = try? JSONDecoder().decode(ProviderKeyFile.self, from: Data(json)) else {
            throw damaged("it is not a list of keys")
        }
        var seen: Set<String> = []
        return try file.keys.map { record in
            let topics = record.topics.compactMap { Topic($0) }
            let environments = Set(record.environments.compactMap(PushEnvironment.init(rawValue:)))
            let revoked = record.revoked.flatMap(WallTime.init(rfc3339:))
            guard ProviderKey.isIdentifier(record.id), ProviderKey.isIdentifier(record.team),
                seen.insert(record.id).inserted, topics.count == record.topics.count,
                environments.count == record.environments.count, !environments.isEmpty,
                let publicKey = try? P256.Signing.PublicKey(pemRepresentation: record.publicKey),
                let created = WallTime(rfc3339: record.created), (revoked == nil) == (record.revoked == nil)
            else { throw damaged("the key \(record.id.prefix(16)) is invalid") }
            return ProviderKey(
                id: record.id,
                team: record.team,
                topics: topics,
                environments: environments,
                publicKey: publicKey,
                created: created,
                revoked: revoked
            )
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
