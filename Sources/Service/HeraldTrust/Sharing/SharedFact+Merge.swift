extension SharedFact {
    /// Merges what the log has of a fact with what this node has.
    ///
    /// The log decides between two that exclude each other. Everything permanent wins over what came before it: revoked,
    /// used, withdrawn, retired. So nodes that have heard of the same changes agree, whatever the order in which they heard.
    package static func merge(log: SharedFact, own: SharedFact) -> SharedFact {
        switch (log, own) {
        case (.file(let log), .file(let own)):
            return .file(own.revision > log.revision ? own : log)
        case (.tokenKeys(let log), .tokenKeys(let own)):
            return .tokenKeys(.merge(log: log, own: own))
        case (.providerKey(var merged), .providerKey(let own)):
            merged.revoked = earlier(merged.revoked, own.revoked)
            return .providerKey(merged)
        case (.certificate(var merged), .certificate(let own)):
            merged.revoked = earlier(merged.revoked, own.revoked)
            return .certificate(merged)
        case (.device(var merged), .device(let own)):
            merged.revoked = earlier(merged.revoked, own.revoked)
            merged.add(own.certificates)
            merged.take(keptOf: own)
            merged.seen = [merged.seen, own.seen].compactMap(\.self).max()
            merged.take(own)
            return .device(merged)
        case (.invitation(var merged), .invitation(let own)):
            if own.taken > merged.taken { (merged.taken, merged.recent) = (own.taken, own.recent) }
            merged.withdrawn = earlier(merged.withdrawn, own.withdrawn)
            return .invitation(merged)
        case (.topic(let log), .topic(let own)):
            return .topic(own.revision > log.revision ? own : log)
        default: return log
        }
    }

    private static func earlier<Time: Comparable>(_ one: Time?, _ other: Time?) -> Time? {
        guard let one, let other else { return one ?? other }
        return min(one, other)
    }
}

extension TokenKeyRing.Document {
    /// Merges the keys of the log with those of this node.
    ///
    /// Two nodes may add a key at the same moment, with the same number. The one that came first in the log keeps it. The
    /// other one gets the next number, which harms nothing: no token is sealed under a key before every node has it.
    static func merge(log: Self, own: Self) -> Self {
        var merged = log
        for key in own.keys {
            let index = merged.keys.firstIndex { $0.id == key.id }
            guard let secret = key.secret else {
                merged.retire(key, at: index)
                continue
            }
            guard !merged.keys.contains(where: { $0.secret == secret }) else { continue }
            guard let index else {
                merged.keys.append(key)
                continue
            }
            // It was retired elsewhere.
            guard merged.keys[index].secret != nil else { continue }
            var other = key
            other.id = (merged.keys + own.keys).map(\.id).max().map { $0 + 1 } ?? key.id
            merged.keys.append(other)
        }
        merged.keys.sort { $0.id < $1.id }
        return merged
    }

    private mutating func retire(_ key: Key, at index: Int?) {
        guard let index else { return keys.append(key) }
        keys[index].secret = nil
        keys[index].retired = [keys[index].retired, key.retired].compactMap(\.self).min()
    }
}
