import Crypto
package import HeraldModel
import Synchronization

#if canImport(Glibc)
import Glibc
#else
import Darwin
#endif

/// A provider, as its token names it.
///
/// Made by ``ProviderTokenVerifier`` only.
package struct ProviderTokenIdentity: Hashable, Sendable {
    package let keyID: String
    package let team: String
    package let topics: TopicScope
    package let environments: Set<PushEnvironment>
    package let issued: WallTime
}

/// What a provider token is worth.
package enum ProviderTokenVerdict: Hashable, Sendable {
    case valid(ProviderTokenIdentity)
    /// Refused; `why` is for the provider's eyes and holds nothing of the token but its key identifier and team.
    case refused(Rejection, why: String)
}

/// Tells whether a provider token is good, from any thread.
///
/// 1. Checks form, key, team, signature and age.
/// 2. Remembers tokens whose signature was good, by their bytes, in a bounded table: checking a signature costs some
///    140 µs, finding a remembered token 0.3. Age is judged each time. All is forgotten when the keys change.
/// 3. Holds the ``CredentialBook``, and says to which topics an identity may send.
package final class ProviderTokenVerifier: Sendable {
    /// How many tokens are remembered: some 300 bytes each.
    package static let cacheCapacity = 4096

    private struct Entry {
        let token: [UInt8]
        let identity: ProviderTokenIdentity
    }

    private struct Shelf {
        var book: CredentialBook
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

    private let shelf: Mutex<Shelf>
    private let shards: [Shard]

    package init(book: CredentialBook) {
        shelf = Mutex(Shelf(book: book))
        shards = (0..<Self.shardCount).map { _ in Shard(capacity: Self.cacheCapacity / Self.shardCount) }
    }

    /// Judges a token: what follows `bearer ` in the field `authorization`.
    package func verify(_ token: UnsafeRawBufferPointer, now: WallTime) -> ProviderTokenVerdict {
        let hash = ProviderTokenVerifier.hash(token)
        let shard = shards[Int(truncatingIfNeeded: hash >> 61)]
        let remembered = shard.state.withLock { state in
            state.cache.first(hash: hash) { entry in
                entry.token.withUnsafeBytes { known in
                    guard known.count == token.count, let left = known.baseAddress, let right = token.baseAddress else {
                        return false
                    }
                    return memcmp(left, right, known.count) == 0
                }
            }
        }
        if let remembered { return judgeAge(remembered.identity, now: now) }
        return verifyAndRemember(token, hash: hash, shard: shard, now: now)
    }

    /// Judges a token given as bytes of any kind that lie together.
    package func verify(_ token: [UInt8], now: WallTime) -> ProviderTokenVerdict {
        token.withUnsafeBytes { verify($0, now: now) }
    }

    /// Whether the holder of a good token may send to a topic now.
    package func mayPush(_ topic: Topic, as identity: ProviderTokenIdentity) -> Bool {
        switch identity.topics {
        case .topics(let topics): topics.contains(topic)
        case .wholeTeam: shelf.withLock { $0.book.mayPush(topic: topic, team: identity.team) }
        }
    }

    /// The present book.
    package var book: CredentialBook {
        shelf.withLock { $0.book }
    }

    /// Grows when keys or claims change; what a connection remembers of an earlier generation is to be asked anew.
    package var generation: UInt64 {
        shelf.withLock { $0.generation }
    }

    /// Exchanges the book; every token is checked anew.
    package func replaceBook(_ book: CredentialBook) {
        shelf.withLock { shelf in
            shelf.book = book
            shelf.generation += 1
            for shard in shards {
                shard.state.withLock { state in
                    state.generation = shelf.generation
                    state.cache.removeAll()
                }
            }
        }
    }

    private func verifyAndRemember(
        _ token: UnsafeRawBufferPointer,
        hash: UInt64,
        shard: Shard,
        now: WallTime
    ) -> ProviderTokenVerdict {
        let (book, generation) = shelf.withLock { ($0.book, $0.generation) }
        let claims: ProviderTokenClaims
        do {
            claims = try ProviderTokenClaims(token)
        } catch {
            return .refused(.invalidProviderToken, why: error.why)
        }
        guard let key = book.key(claims.keyID) else {
            return .refused(.invalidProviderToken, why: "there is no key \(claims.keyID)")
        }
        guard key.revoked == nil else {
            return .refused(.invalidProviderToken, why: "the key \(claims.keyID) is revoked")
        }
        guard key.team == claims.team else {
            return .refused(.invalidProviderToken, why: "the key \(claims.keyID) is not of team \(claims.team)")
        }
        var hasher = SHA256()
        hasher.update(bufferPointer: UnsafeRawBufferPointer(rebasing: token[..<claims.signedBytes]))
        guard key.publicKey.isValidSignature(claims.signature, for: hasher.finalize()) else {
            return .refused(.invalidProviderToken, why: "the signature is not by the key \(claims.keyID)")
        }
        let identity = ProviderTokenIdentity(
            keyID: key.id,
            team: key.team,
            topics: TopicScope(named: key.topics),
            environments: key.environments,
            issued: WallTime(seconds: claims.issued)
        )
        shard.state.withLock { state in
            guard state.generation == generation else { return }
            state.cache.insert(Entry(token: Array(token), identity: identity), hash: hash)
        }
        return judgeAge(identity, now: now)
    }

    private func judgeAge(_ identity: ProviderTokenIdentity, now: WallTime) -> ProviderTokenVerdict {
        if identity.issued > now + ProviderToken.clockSkew {
            let ahead = (identity.issued - now).components.seconds
            return .refused(.invalidProviderToken, why: "the token was issued \(ahead) seconds in the future")
        }
        if identity.issued < now - ProviderToken.lifetime {
            let age = (now - identity.issued).components.seconds
            return .refused(.expiredProviderToken, why: "the token was issued \(age) seconds ago; it lives 3600")
        }
        return .valid(identity)
    }

    /// A hash of the token's last 16 bytes, which are the end of its signature and as good as random.
    ///
    /// A provider that searches for signatures of one hash gains nothing: a set holds four, and a miss costs it one more
    /// check of its own signature.
    private static func hash(_ token: UnsafeRawBufferPointer) -> UInt64 {
        guard token.count >= 16 else { return 0 }
        let first = token.loadUnaligned(fromByteOffset: token.count - 16, as: UInt64.self)
        let second = token.loadUnaligned(fromByteOffset: token.count - 8, as: UInt64.self)
        // The text has some bits that never change; a multiplication spreads those that do.
        let mixed = (first ^ (second << 32 | second >> 32)) &* 0x9E37_79B9_7F4A_7C15
        return mixed ^ mixed >> 32
    }
}
