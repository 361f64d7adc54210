import Crypto
import CryptoExtras
import Foundation
package import HeraldModel
import Synchronization

/// Encrypts and decrypts device tokens.
///
/// A token is AES-256-GCM-SIV (RFC 8452) over 16 bytes: device number, app number and generation, big-endian; the result
/// is 16 bytes of ciphertext and 16 bytes of tag. The nonce is constant, so a registration always has the same token. The
/// SIV construction permits this: a repeated nonce reveals only which plaintexts are equal (RFC 8452 §9), and equal
/// plaintexts are the same registration.
///
/// 1. Encrypts with the newest key that all nodes of its cluster have; alone, with the newest.
/// 2. Decrypts with every key that is not retired, newest first. This costs some 4 µs, more than most of a request, so valid
///    tokens are cached. A change of the keys empties the cache.
/// 3. Counts the tokens decrypted with each key.
package final class TokenSeal: Sendable {
    /// The default number of cached tokens: some 4 MiB.
    package static let defaultCacheCapacity = 65_536

    /// The number of tokens decrypted with a key since the service started.
    package struct Usage: Hashable, Sendable {
        package let key: UInt32
        package let opened: UInt64
    }

    private struct Keys {
        var generation: UInt64 = 0
        /// Newest first, at least one.
        var open: [OpenKey]
        /// The newest key that may encrypt.
        var limit = UInt32.max
        /// Counts of earlier generations.
        var counted: [UInt32: UInt64] = [:]

        /// The key that encrypts.
        ///
        /// If none may, since older ones were retired: the oldest, which other nodes are most likely to have.
        var sealing: OpenKey { open.first { $0.id <= limit } ?? open[open.count - 1] }
    }

    private struct OpenKey {
        let id: UInt32
        let secret: SymmetricKey
    }

    private struct Entry {
        let token: DeviceToken
        let contents: TokenContents
        let keyIndex: Int
    }

    /// A part of the cache with its own lock, which reduces contention between event loops.
    private final class Shard: Sendable {
        struct State {
            var generation: UInt64 = 0
            var cache: BoundedCache<Entry>
            var opened: [UInt64]
        }

        let state: Mutex<State>

        init(capacity: Int, keys: Int) {
            state = Mutex(State(cache: BoundedCache(capacity: capacity), opened: Array(repeating: 0, count: keys)))
        }
    }

    private static let shardCount = 16
    private static let nonce = Array("herald token".utf8)

    private let keys: Mutex<Keys>
    private let shards: [Shard]

    package init(keys ring: TokenKeyRing, cacheCapacity: Int = TokenSeal.defaultCacheCapacity) {
        let open = TokenSeal.openKeys(ring)
        keys = Mutex(Keys(open: open))
        shards = (0..<Self.shardCount).map { _ in
            Shard(capacity: cacheCapacity / Self.shardCount, keys: open.count)
        }
    }

    /// The token of a registration, the same until a key is added.
    package func seal(_ contents: TokenContents) -> DeviceToken {
        TokenSeal.seal(contents, keys.withLock { $0.sealing.secret })
    }

    /// All valid tokens of a registration: one for each key that is not retired, newest first.
    ///
    /// A provider that has not heard of a rotation still has the token of an older key.
    package func sealings(of contents: TokenContents) -> [DeviceToken] {
        keys.withLock { $0.open }.map { TokenSeal.seal(contents, $0.secret) }
    }

    private static func seal(_ contents: TokenContents, _ secret: SymmetricKey) -> DeviceToken {
        let plaintext = TokenSeal.plaintext(contents)
        do {
            let nonce = try AES.GCM._SIV.Nonce(data: TokenSeal.nonce)
            let box = try AES.GCM._SIV.seal(plaintext, using: secret, nonce: nonce)
            if let token = DeviceToken(bytes: box.combined.dropFirst(TokenSeal.nonce.count)) { return token }
        } catch {}
        // The cipher refuses only keys and nonces of a wrong length, which the ring and this type exclude.
        preconditionFailure("AES-GCM-SIV failed with a key of 256 bits")
    }

    /// The number of the key that encrypts.
    package var newestKey: UInt32 {
        keys.withLock { $0.sealing.id }
    }

    /// The number of the newest key that decrypts.
    package var newestOpenKey: UInt32 {
        keys.withLock { $0.open[0].id }
    }

    /// Encrypts with no newer key than this one from now on: other nodes may lack newer ones.
    package func sealUpTo(_ key: UInt32) {
        keys.withLock { $0.limit = key }
    }

    /// Decrypts a token.
    /// - Returns: nil for a token that is forged, of another service, or of a retired key.
    package func open(_ token: DeviceToken) -> TokenContents? {
        // The first word of a valid token is as good as random, and only valid tokens are cached.
        let hash = token.words.0
        let shard = shards[Int(truncatingIfNeeded: hash >> 60)]
        let cached = shard.state.withLock { state -> TokenContents? in
            guard let entry = state.cache.first(hash: hash, where: { $0.token == token }) else { return nil }
            state.opened[entry.keyIndex] &+= 1
            return entry.contents
        }
        return cached ?? openAndCache(token, hash: hash, shard: shard)
    }

    /// The number of the key of a token; nil for an invalid token.
    ///
    /// For operators, not for requests.
    package func keyNumber(of token: DeviceToken) -> UInt32? {
        guard let box = try? AES.GCM._SIV.SealedBox(combined: TokenSeal.nonce + token.bytes) else { return nil }
        let open = keys.withLock { $0.open }
        return open.first { (try? AES.GCM._SIV.open(box, using: $0.secret)) != nil }?.id
    }

    /// Replaces the keys and empties the cache.
    package func replaceKeys(_ ring: TokenKeyRing) {
        let open = TokenSeal.openKeys(ring)
        keys.withLock { keys in
            let former = keys.open
            keys.open = open
            keys.generation += 1
            for shard in shards {
                let opened = shard.state.withLock { state in
                    defer {
                        state.generation = keys.generation
                        state.cache.removeAll()
                        state.opened = Array(repeating: 0, count: open.count)
                    }
                    return state.opened
                }
                for (key, count) in zip(former, opened) { keys.counted[key.id, default: 0] += count }
            }
        }
    }

    /// The use of each key since the service started, newest key first.
    package var usage: [Usage] {
        keys.withLock { keys in
            var totals = keys.open.map { keys.counted[$0.id] ?? 0 }
            for shard in shards {
                shard.state.withLock { state in
                    for index in totals.indices { totals[index] += state.opened[index] }
                }
            }
            return zip(keys.open, totals).map { Usage(key: $0.id, opened: $1) }
        }
    }

    private func openAndCache(_ token: DeviceToken, hash: UInt64, shard: Shard) -> TokenContents? {
        let (generation, open) = keys.withLock { ($0.generation, $0.open) }
        let combined = TokenSeal.nonce + token.bytes
        guard let box = try? AES.GCM._SIV.SealedBox(combined: combined) else { return nil }
        for (index, key) in open.enumerated() {
            guard let plaintext = try? AES.GCM._SIV.open(box, using: key.secret),
                let contents = TokenSeal.contents(plaintext)
            else { continue }
            shard.state.withLock { state in
                // Not cached if the keys have changed meanwhile.
                guard state.generation == generation else { return }
                state.opened[index] &+= 1
                state.cache.insert(Entry(token: token, contents: contents, keyIndex: index), hash: hash)
            }
            return contents
        }
        return nil
    }

    private static func openKeys(_ ring: TokenKeyRing) -> [OpenKey] {
        ring.openKeys.compactMap { key in key.secret.map { OpenKey(id: key.id, secret: $0) } }
    }

    private static func plaintext(_ contents: TokenContents) -> [UInt8] {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(16)
        withUnsafeBytes(of: contents.slot.device.value.bigEndian) { bytes += $0 }
        withUnsafeBytes(of: contents.slot.app.value.bigEndian) { bytes += $0 }
        withUnsafeBytes(of: contents.generation.bigEndian) { bytes += $0 }
        return bytes
    }

    private static func contents(_ plaintext: Data) -> TokenContents? {
        guard plaintext.count == 16 else { return nil }
        let words = plaintext.reduce(into: (high: UInt64(0), low: UInt64(0))) { words, byte in
            words.high = words.high << 8 | words.low >> 56
            words.low = words.low << 8 | UInt64(byte)
        }
        return TokenContents(
            slot: Slot(
                device: DeviceNumber(words.high),
                app: AppNumber(UInt32(truncatingIfNeeded: words.low >> 32))
            ),
            generation: UInt32(truncatingIfNeeded: words.low)
        )
    }
}
