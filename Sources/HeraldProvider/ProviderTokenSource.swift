import Crypto
import Foundation
import HeraldModel
import HeraldTrust
import Synchronization

/// Keeps one provider token and makes another in time: not more often than every 20 minutes and not less often than
/// every 60 ("Establishing a token-based connection to APNs").
final class ProviderTokenSource: Sendable {
    /// How old a token is when it is replaced: with room before the hour, for clocks that differ.
    static let renewal = Duration.seconds(50 * 60)

    private struct Held {
        let token: String
        let issued: WallTime
    }

    private let key: P256.Signing.PrivateKey
    private let keyID: String
    private let team: String
    private let held = Mutex<Held?>(nil)

    init(pem: [UInt8], keyID: String, team: String) throws {
        do {
            key = try P256.Signing.PrivateKey(pemRepresentation: String(decoding: pem, as: UTF8.self))
        } catch {
            throw ProviderError(.badCredential, "the key is not a P-256 private key in PEM, as AuthKey files are")
        }
        guard ProviderKey.isIdentifier(keyID), ProviderKey.isIdentifier(team) else {
            throw ProviderError(
                .badCredential,
                "the identifiers of key and team are ten letters and digits each, A-Z and 0-9"
            )
        }
        self.keyID = keyID
        self.team = team
    }

    /// The token for a request at `now`.
    func token(at now: WallTime) throws -> String {
        try held.withLock { held in
            if let held, held.issued <= now, now - held.issued < ProviderTokenSource.renewal { return held.token }
            let token = try ProviderToken.sign(key: key, keyID: keyID, team: team, issued: now)
            held = Held(token: token, issued: now)
            return token
        }
    }
}
