import Crypto
import HeraldIdentity
import HeraldModel
import NIOCore
import Synchronization

/// Signs the provider tokens of one key and keeps the newest, for all clients of the process.
final class ProviderTokenSource: Sendable {
    private let key: P256.Signing.PrivateKey
    private let keyID: String
    private let team: String
    private let schedule = Mutex(TokenSchedule())

    init(pem: [UInt8], keyID: String, team: String) throws {
        do {
            key = try PEMFile(pem).signingKey()
        } catch {
            throw ProviderError(.badCredential, "the file of the key cannot be used: \(error)")
        }
        guard ProviderToken.isIdentifier(keyID), ProviderToken.isIdentifier(team) else {
            throw ProviderError(
                .badCredential,
                "the identifiers of key and team have ten characters each, A-Z and 0-9"
            )
        }
        self.keyID = keyID
        self.team = team
    }

    /// The value of `authorization` for a request sent now.
    func authorization(wall: WallTime, now: NIODeadline) throws -> String {
        try schedule.withLock { schedule in
            if let value = schedule.token(wall: wall, now: now) { return value }
            let value = "bearer " + (try ProviderToken.sign(key: key, keyID: keyID, team: team, issued: wall))
            schedule.made(value, wall: wall, now: now)
            return value
        }
    }

    /// Notes that the service refused a token as too old.
    /// - Returns: Whether the next request gets another token.
    func expired(_ authorization: String, wall: WallTime, now: NIODeadline) -> Bool {
        schedule.withLock { $0.expired(authorization, wall: wall, now: now) }
    }

    /// Identifies a key; the same identifiers with another public key are another key.
    private struct Name: Hashable {
        let id: String
        let team: String
        let publicKey: [UInt8]
    }

    private static let known = Mutex([Name: ProviderTokenSource]())

    /// The process's source for a key.
    ///
    /// It outlives its clients, so that a new client does not change the token. There is one for each key.
    static func shared(pem: [UInt8], keyID: String, team: String) throws -> ProviderTokenSource {
        let source = try ProviderTokenSource(pem: pem, keyID: keyID, team: team)
        let name = Name(id: keyID, team: team, publicKey: Array(source.key.publicKey.rawRepresentation))
        return known.withLock { known in
            if let source = known[name] { return source }
            known[name] = source
            return source
        }
    }
}
