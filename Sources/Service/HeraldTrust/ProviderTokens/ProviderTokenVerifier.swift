import Crypto
import HeraldIdentity
package import HeraldModel
import Synchronization

#if canImport(Glibc)
import Glibc
#else
import Darwin
#endif

/// The identity of a provider from its token.
///
/// Only ``ProviderTokenVerifier`` creates it.
package struct ProviderTokenIdentity: Hashable, Sendable {
    package let keyID: String
    package let team: String
    package let topics: TopicScope
    package let environments: Set<PushEnvironment>
    package let issued: WallTime
}

/// The result of verifying a provider token.
package enum ProviderTokenVerdict: Hashable, Sendable {
    case valid(ProviderTokenIdentity)
    /// Refused; `why` is for the provider, and has nothing of the token but its key identifier and team.
    case refused(RefusalReason, why: String)
    /// Refused as ``HeraldModel/RefusalReason/invalidProviderToken`` for a key that is not known here.
    ///
    /// Everything else about a key is permanent.
    case unknownKey(why: String)
}

/// Verifies provider tokens, on any thread.
///
/// 1. Checks form, key, team, signature and age.
/// 2. Caches tokens with a valid signature: the check of a signature costs some 140 µs, a look-up 0.3. Age is checked each
///    time. A change of the keys empties the cache.
/// 3. Decides by the ``CredentialTable`` to which topics an identity may send.
package final class ProviderTokenVerifier: Sendable {
    /// The most cached tokens: some 300 bytes each.
    package static let cacheCapacity = 4096

    private struct Entry {
        let token: [UInt8]
        let identity: ProviderTokenIdentity
    }

    private struct Current {
        var credentials: CredentialTable
        var generation: UInt64 = 0
    }

    private final class Shard: Sendable {
        struct State {
            var generation: UInt64 = 0
            var cache: BoundedCache<Entry>
        }

        let state: Mutex<State>

        init(capacity: Int) {
            state = Mutex(State(cache: BoundedCache(capacity: capacity)))
        }
    }

    private static let shardCount = 8

    private let current: Mutex<Current>
    private let shards: [Shard]

    package init(credentials: CredentialTable) {
        current = Mutex(Current(credentials: credentials))
        shards = (0..<Self.shardCount).map { _ in Shard(capacity: Self.cacheCapacity / Self.shardCount) }
    }

    /// Verifies a token: the value after `bearer ` in the field `authorization`.
    package func verify(_ token: UnsafeRawBufferPointer, now: WallTime) -> ProviderTokenVerdict {
        let hash = ProviderTokenVerifier.hash(token)
        let shard = shards[Int(truncatingIfNeeded: hash >> 61)]
        let cached = shard.state.withLock { state in
            state.cache.first(hash: hash) { entry in
                entry.token.withUnsafeBytes { known in
                    guard known.count == token.count, let left = known.baseAddress, let right = token.baseAddress else {
                        return false
                    }
                    return memcmp(left, right, known.count) == 0
                }
            }
        }
        if let cached { return checkAge(cached.identity, now: now) }
        return verifyAndCache(token, hash: hash, shard: shard, now: now)
    }

    /// Verifies a token given as an array.
    package func verify(_ token: [UInt8], now: WallTime) -> ProviderTokenVerdict {
        token.withUnsafeBytes { verify($0, now: now) }
    }

    /// Decides whether a credential may send to a topic now.
    package func permission(for topic: Topic, team: String?, scope: TopicScope) -> TopicPermission {
        current.withLock { $0.credentials.permission(for: topic, team: team, scope: scope) }
    }

    package var credentials: CredentialTable {
        current.withLock { $0.credentials }
    }

    /// Rises when keys or topic claims change; connections then discard what they cached of an earlier generation.
    package var generation: UInt64 {
        current.withLock { $0.generation }
    }

    /// Replaces the credentials and empties the cache.
    package func replaceCredentials(_ credentials: CredentialTable) {
        current.withLock { current in
            current.credentials = credentials
            current.generation += 1
            for shard in shards {
                shard.state.withLock { state in
                    state.generation = current.generation
                    state.cache.removeAll()
                }
            }
        }
    }

    private func verifyAndCache(
        _ token: UnsafeRawBufferPointer,
        hash: UInt64,
        shard: Shard,
        now: WallTime
    ) -> ProviderTokenVerdict {
        let (credentials, generation) = current.withLock { ($0.credentials, $0.generation) }
        let claims: ProviderTokenClaims
        do {
            claims = try ProviderTokenClaims(token)
        } catch {
            return .refused(.invalidProviderToken, why: error.why)
        }
        guard let key = credentials.key(claims.keyID) else {
            return .unknownKey(why: "there is no key \(claims.keyID)")
        }
        guard key.revoked == nil else {
            return .refused(.invalidProviderToken, why: "the key \(claims.keyID) is revoked")
        }
        guard key.team == claims.team else {
            return .refused(
                .invalidProviderToken,
                why: "the key \(claims.keyID) does not belong to team \(claims.team)"
            )
        }
        var hasher = SHA256()
        hasher.update(bufferPointer: UnsafeRawBufferPointer(rebasing: token[..<claims.signedBytes]))
        guard key.publicKey.isValidSignature(claims.signature, for: hasher.finalize()) else {
            return .refused(.invalidProviderToken, why: "the signature does not match the key \(claims.keyID)")
        }
        let identity = ProviderTokenIdentity(
            keyID: key.name,
            team: key.team,
            topics: key.scope,
            environments: key.environments,
            issued: WallTime(seconds: claims.issued)
        )
        shard.state.withLock { state in
            guard state.generation == generation else { return }
            state.cache.insert(Entry(token: Array(token), identity: identity), hash: hash)
        }
        return checkAge(identity, now: now)
    }

    private func checkAge(_ identity: ProviderTokenIdentity, now: WallTime) -> ProviderTokenVerdict {
        if identity.issued > now + ProviderToken.clockSkew {
            let ahead = (identity.issued - now).components.seconds
            return .refused(.invalidProviderToken, why: "the token was issued \(ahead) seconds in the future")
        }
        if identity.issued < now - ProviderToken.lifetime {
            let age = (now - identity.issued).components.seconds
            return .refused(.expiredProviderToken, why: "the token was issued \(age) seconds ago; its lifetime is 3600")
        }
        return .valid(identity)
    }

    /// A hash of the token's last 16 bytes, which are the end of its signature and as good as random.
    ///
    /// A provider gains nothing from signatures with equal hashes: a set has four, and a miss costs one signature check.
    private static func hash(_ token: UnsafeRawBufferPointer) -> UInt64 {
        guard token.count >= 16 else { return 0 }
        let first = token.loadUnaligned(fromByteOffset: token.count - 16, as: UInt64.self)
        let second = token.loadUnaligned(fromByteOffset: token.count - 8, as: UInt64.self)
        // Some bits of base 64 text never change; a multiplication spreads the others.
        let mixed = (first ^ (second << 32 | second >> 32)) &* 0x9E37_79B9_7F4A_7C15
        return mixed ^ mixed >> 32
    }
}
