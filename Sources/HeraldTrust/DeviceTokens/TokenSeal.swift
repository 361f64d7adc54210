import Crypto
import CryptoExtras
import Foundation
package import HeraldModel
import Synchronization

/// Makes device tokens and opens them.
///
/// A token is AES-256-GCM-SIV (RFC 8452) over 16 bytes: device number, app number and generation, big-endian; the result
/// is 16 bytes of ciphertext and the 16 of the tag. The nonce never changes, so one registration always has one token.
/// That is what the SIV construction permits: under a repeated nonce it tells an onlooker which plaintexts are equal and
/// nothing else (RFC 8452 §9), and equal plaintexts are here the same registration.
///
/// 1. Seals, under the newest key.
/// 2. Opens, under every key that is not retired, the newest first. Opening costs some 4 µs, more than most of a request,
///    so opened tokens are remembered in a bounded table. Only what opened gets in, and all goes when the keys change.
/// 3. Counts per key how many tokens were opened under it.
package final class TokenSeal: Sendable {
    /// How many opened tokens are remembered unless the caller wants otherwise: some 4 MiB.
    package static let defaultCacheCapacity = 65_536

    /// How often a key was used since the service started.
    package struct Usage: Hashable, Sendable {
        package let key: UInt32
        package let opened: UInt64
    }

    private struct Keys {
        var generation: UInt64 = 0
        var open: [OpenKey]
        /// What the counters of earlier generations came to.
        var counted: [UInt32: UInt64] = [:]
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

    /// A part of the table with its own lock, so that event loops seldom meet at one.
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

    /// The token of a registration; the same one each time, until a key is added.
    package func seal(_ contents: TokenContents) -> DeviceToken {
        TokenSeal.seal(contents, keys.withLock { $0.open[0].secret })
    }

    /// Every token that may be held for a registration: one for each key that is not retired, the newest first.
    ///
    /// Somebody who has not heard of a rotation still holds that of an older key.
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
        // The cipher refuses only keys and nonces of a wrong length; the ring admits no such key, and the nonce is ours.
        preconditionFailure("AES-GCM-SIV failed with a key of 256 bits")
    }

    /// The number of the key under which tokens are sealed now.
    package var newestKey: UInt32 {
        keys.withLock { $0.open[0].id }
    }

    /// What a token holds.
    /// - Returns: nil if it opens under no key that is not retired: forged, of another service, or of a retired key.
    package func open(_ token: DeviceToken) -> TokenContents? {
        // A genuine token's first word is as good as random, and only genuine ones are kept.
        let hash = token.words.0
        let shard = shards[Int(truncatingIfNeeded: hash >> 60)]
        let remembered = shard.state.withLock { state -> TokenContents? in
            guard let entry = state.cache.first(hash: hash, where: { $0.token == token }) else { return nil }
            state.opened[entry.keyIndex] &+= 1
            return entry.contents
        }
        return remembered ?? openAndRemember(token, hash: hash, shard: shard)
    }

    /// Which key a token was sealed under; nil if it opens under none.
    ///
    /// For people who ask, not for requests.
    package func keyNumber(of token: DeviceToken) -> UInt32? {
        guard let box = try? AES.GCM._SIV.SealedBox(combined: TokenSeal.nonce + token.bytes) else { return nil }
        let open = keys.withLock { $0.open }
        return open.first { (try? AES.GCM._SIV.open(box, using: $0.secret)) != nil }?.id
    }

    /// Exchanges the keys; what was opened under the former ones is forgotten.
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

    /// How many tokens were opened under each key since the service started, the newest key first.
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

    private func openAndRemember(_ token: DeviceToken, hash: UInt64, shard: Shard) -> TokenContents? {
        let (generation, open) = keys.withLock { ($0.generation, $0.open) }
        let combined = TokenSeal.nonce + token.bytes
        guard let box = try? AES.GCM._SIV.SealedBox(combined: combined) else { return nil }
        for (index, key) in open.enumerated() {
            guard let plaintext = try? AES.GCM._SIV.open(box, using: key.secret),
                let contents = TokenSeal.contents(plaintext)
            else { continue }
            shard.state.withLock { state in
                // The keys changed meanwhile: what the former ones opened is not kept.
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
