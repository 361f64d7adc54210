import Crypto
import Foundation
import HeraldIdentity
package import HeraldModel
import Synchronization

/// Takes the trust of other nodes into this node's folder, and finds what they lack of it.
///
/// The folder stays the working copy: every command changes it as on one machine.
package final class FolderSharing: Sendable {
    private struct State {
        /// The newest facts of the log on keys of tokens and providers.
        var known: [SharedKey: SharedFact] = [:]
        var files: [SharedFile.Name: SharedFileState] = [:]
        /// The files of which the log has everything.
        var settled: [String: TrustFile.Stamp] = [:]
        /// The lengths of files that are too long to be shared.
        var tooLong: [SharedFile.Name: Int] = [:]
    }

    package let folder: TrustFolder
    private let ledger: any SharedLedger
    private let state = Mutex(State())

    /// - Throws: ``TrustError`` if the ledger of the folder cannot be shared.
    package init(_ folder: TrustFolder) throws {
        guard let ledger = folder.store as? any SharedLedger else {
            throw TrustError(.unexpected, "\(folder.layout.ledger) cannot be shared")
        }
        self.folder = folder
        self.ledger = ledger
    }

    /// Begins to note changes for the other nodes.
    /// - Parameter anew: Whether to share everything again: the cluster is new, or has lost something.
    /// - Throws: ``TrustError``.
    package func begin(anew: Bool) async throws {
        try await ledger.beginSharing(anew: anew)
        var files = try await ledger.sharedFiles()
        // The replacement of a lost file is not a change: the cluster's own, if it has one, is newer.
        if folder.hasWrittenAuthority { files[.authority] = nil }
        state.withLock { state in
            state.files = files
            if anew { (state.known, state.settled) = ([:], [:]) }
        }
    }

    /// The sequence of the log up to which everything of the ledger was taken.
    package func position() async throws -> UInt64? { try await ledger.sharedPosition() }

    // MARK: - Others' changes

    /// Takes facts of the log into the folder.
    ///
    /// `position` is the sequence of the log up to which these are all of the ledger; nil if they are single ones.
    /// - Returns: Whether the folder has changed.
    /// - Throws: ``TrustError``; what was taken already stays, and may be taken again.
    package func take(_ facts: [SharedFact], upTo position: UInt64?, now: WallTime) async throws -> Bool {
        let files = facts.filter { !$0.key.kind.isOfLedger }
        let others = facts.filter(\.key.kind.isOfLedger)
        var isChanged = false
        if !files.isEmpty {
            isChanged = try await TrustLock.with(folder.layout) { try await take(files: files) }
        }
        guard !others.isEmpty || position != nil else { return isChanged }
        let taken = try await ledger.take(others, upTo: position)
        if taken.isRevocation {
            try await TrustLock.with(folder.layout) { try await folder.revocations.publish(now: now) }
        }
        return isChanged || taken.isChanged
    }

    /// Called under the lock.
    private func take(files facts: [SharedFact]) async throws -> Bool {
        var isChanged = false
        var keys: [ProviderKeyRecord] = []
        for fact in facts {
            switch fact {
            case .file(let file): if try await take(file) { isChanged = true }
            case .tokenKeys(let document): if try take(document) { isChanged = true }
            case .providerKey(let key): keys.append(key)
            default: break
            }
        }
        if try take(keys) { isChanged = true }
        state.withLock { state in
            for fact in facts { state.known[fact.key] = fact }
        }
        return isChanged
    }

    private func take(_ file: SharedFile) async throws -> Bool {
        guard file.revision > state.withLock({ $0.files[file.name]?.revision ?? 0 }) else { return false }
        let (path, secrecy) = folder.layout.shared(file.name)
        let present = TrustFile.exists(path) ? try TrustFile.read(path, secrecy) : nil
        let isChanged = present != Array(file.content)
        if isChanged { try TrustFile.write(Array(file.content), to: path, secrecy) }
        let new = SharedFileState(revision: file.revision, digest: Self.digest(file.content))
        try await ledger.note(new, of: file.name)
        state.withLock { $0.files[file.name] = new }
        return isChanged
    }

    private func take(_ document: TokenKeyRing.Document) throws -> Bool {
        let own = try folder.tokenKeys().document
        let merged = TokenKeyRing.Document.merge(log: document, own: own)
        guard merged != own else { return false }
        try TrustFile.write(try TokenKeyRing(merged).json(), to: folder.layout.tokenKeys, .secret)
        return true
    }

    private func take(_ records: [ProviderKeyRecord]) throws -> Bool {
        guard !records.isEmpty else { return false }
        let own = try ProviderKeyFile(json: try TrustFile.read(folder.layout.providerKeys, .secret)).keys
        var merged = own
        var indices = Dictionary(own.enumerated().map { ($1.id, $0) }) { first, _ in first }
        for record in records {
            if let index = indices[record.id] {
                guard
                    case .providerKey(let key) = SharedFact.merge(
                        log: .providerKey(record),
                        own: .providerKey(own[index])
                    )
                else { continue }
                merged[index] = key
            } else {
                indices[record.id] = merged.count
                merged.append(record)
            }
        }
        guard merged != own else { return false }
        let json = try ProviderKeyFile(records: merged).json()
        _ = try ProviderKeyFile.keys(json: json)
        try TrustFile.write(json, to: folder.layout.providerKeys, .secret)
        return true
    }

    // MARK: - Own changes

    /// Facts that other nodes may lack.
    /// - Throws: ``TrustError`` if the ledger cannot be read. A file that cannot be read is left out: its reload says so.
    package func unshared(limit: Int) async throws -> [UnsharedFact] {
        let files = unsharedFiles().prefix(limit).map { UnsharedFact(number: nil, fact: $0) }
        return files + (try await ledger.unshared(limit: limit - files.count))
    }

    /// Files that other nodes do not get because they are too long, each in words with what to do.
    package var tooLongFiles: [String] {
        state.withLock { $0.tooLong }.sorted { $0.key.rawValue < $1.key.rawValue }.map { name, length in
            "\(folder.layout.shared(name).path) has \(length) bytes, and nodes share at most \(SharedFile.maximumBytes) of "
                + "a file: copy it to the other nodes yourself"
        }
    }

    /// Notes what the log has of a fact after sharing it.
    package func wereShared(_ facts: [(UnsharedFact, inLog: SharedFact)], now: WallTime) async throws -> Bool {
        for (unshared, inLog) in facts where unshared.number == nil {
            guard case .file(let file) = inLog else {
                state.withLock { $0.known[inLog.key] = inLog }
                continue
            }
            guard try digest(of: file.name) == Self.digest(file.content) else { continue }
            let new = SharedFileState(revision: file.revision, digest: Self.digest(file.content))
            try await ledger.note(new, of: file.name)
            state.withLock { $0.files[file.name] = new }
        }
        try await ledger.wasShared(facts.compactMap { $0.0.number })
        // The log had more.
        let differing = facts.filter { $0.0.fact != $0.inLog }.map(\.inLog)
        return differing.isEmpty ? false : try await take(differing, upTo: nil, now: now)
    }

    private func unsharedFiles() -> [SharedFact] {
        var facts: [SharedFact] = []
        for name in SharedFile.Name.allCases where isShared(name) {
            let (path, secrecy) = folder.layout.shared(name)
            // The operator may keep the key elsewhere.
            if name == .announcementKey, !TrustFile.exists(path) { continue }
            facts += unsettled(path) { known in
                let content = Data(try TrustFile.read(path, secrecy))
                let length = content.count
                state.withLock { $0.tooLong[name] = length > SharedFile.maximumBytes ? length : nil }
                let former = known.files[name]
                // The root is the cluster's identity, which no node changes.
                guard former == nil || name != .root && former?.digest != Self.digest(content),
                    length <= SharedFile.maximumBytes
                else { return [] }
                return [.file(SharedFile(name: name, revision: (former?.revision ?? 0) + 1, content: content))]
            }
        }
        facts += unsettled(folder.layout.tokenKeys) { _ in [.tokenKeys(try folder.tokenKeys().document)] }
        facts += unsettled(folder.layout.providerKeys) { _ in
            let json = try TrustFile.read(folder.layout.providerKeys, .secret)
            return try ProviderKeyFile(json: json).keys.map { .providerKey($0) }
        }
        return facts
    }

    /// The facts of a file that the log may lack.
    private func unsettled(_ path: String, _ read: (State) throws -> [SharedFact]) -> [SharedFact] {
        do {
            let present = state.withLock { $0 }
            // The stamp before the content, so that a change in between is found.
            guard let stamp = try TrustFile.stamp(path), stamp != present.settled[path] else { return [] }
            let facts = try read(present).filter { present.known[$0.key] != $0 }
            if facts.isEmpty { state.withLock { $0.settled[path] = stamp } }
            return facts
        } catch {
            return []
        }
    }

    /// Whether the nodes have a file in common.
    private func isShared(_ name: SharedFile.Name) -> Bool {
        switch name {
        case .root, .providerAuthority, .deviceAuthority, .authority, .announcementKey, .announcement: true
        case .providerList: !folder.providerAuthority.canSign
        case .deviceList: !folder.deviceAuthority.canSign
        }
    }

    private func digest(of name: SharedFile.Name) throws -> [UInt8] {
        let (path, secrecy) = folder.layout.shared(name)
        return Self.digest(try TrustFile.read(path, secrecy))
    }

    private static func digest(_ bytes: some DataProtocol) -> [UInt8] { Array(SHA256.hash(data: bytes)) }
}
