import Foundation
package import HeraldModel
import Synchronization
package import X509

/// Which door's peers a thing is about.
package enum PeerKind: String, Hashable, Sendable, CaseIterable {
    case provider
    case device
}

/// What is done when there is no revocation list, or its successor is overdue.
package struct RevocationPolicy: Hashable, Sendable {
    /// How long after its `nextUpdate` a list still counts.
    ///
    /// Zero: peers are refused from that moment on.
    package var grace: Duration
    /// Whether peers are let in where there is no list at all; for authorities of users' own that publish none.
    package var mayBeMissing: Bool

    package init(grace: Duration = .zero, mayBeMissing: Bool = false) {
        self.grace = grace
        self.mayBeMissing = mayBeMissing
    }
}

/// The revocation lists in force, from any thread.
///
/// A list is exchanged for a newer one only. One that cannot be read, is not the authority's, or is older than the one
/// in force leaves that in force, and says why.
package final class RevocationBook: Sendable {
    /// Where the lists of one kind of peers are, and who signs them.
    struct Source: Sendable {
        let path: String
        let authority: CertificateAuthority
    }

    /// What a serial number is, according to the lists.
    package enum Status: Hashable, Sendable {
        case good
        case revoked(since: WallTime)
        /// There is no list that may be relied on.
        case unknown
    }

    /// What came of reading the lists again.
    package struct Reloaded: Sendable {
        /// The peers whose list is another now: open connections are to be looked over, and TLS contexts made anew.
        package var changed: Set<PeerKind> = []
        package var failures: [TrustError] = []
    }

    /// How far the list of one kind of peers may be relied on.
    package enum Standing: Hashable, Sendable {
        /// It is in force, until the moment at which its successor is due; nil if it names none.
        case current(until: WallTime?)
        /// Its successor was due, and the grace is over as well: nobody new is let in.
        case overdue(since: WallTime)
        /// There is none.
        case missing
    }

    private struct Shelf {
        var lists: [PeerKind: RevocationList] = [:]
        var stamps: [PeerKind: TrustFile.Stamp] = [:]
    }

    private let sources: [PeerKind: Source]
    private let policy: RevocationPolicy
    private let shelf = Mutex(Shelf())

    init(sources: [PeerKind: Source], policy: RevocationPolicy) {
        self.sources = sources
        self.policy = policy
    }

    /// What a certificate of an authority of ours is.
    package func status(_ serial: Certificate.SerialNumber, of kind: PeerKind, now: WallTime) -> Status {
        shelf.withLock { shelf in
            guard let list = shelf.lists[kind] else { return policy.mayBeMissing ? .good : .unknown }
            if let since = list.revoked(serial) { return .revoked(since: since) }
            if let due = list.nextUpdate, now > due + policy.grace { return .unknown }
            return .good
        }
    }

    /// Whether peers are let in where there is no list at all.
    var mayLackList: Bool { policy.mayBeMissing }

    /// How far the list of one kind of peers may be relied on.
    package func standing(of kind: PeerKind, now: WallTime) -> Standing {
        guard let list = shelf.withLock({ $0.lists[kind] }) else { return .missing }
        if let due = list.nextUpdate, now > due + policy.grace { return .overdue(since: due) }
        return .current(until: list.nextUpdate)
    }

    /// Whether the holder of an open connection is revoked meanwhile; `serial` is as its identity has it.
    package func isRevoked(serial: String, of kind: PeerKind) -> Bool {
        shelf.withLock { $0.lists[kind]?.revoked(serial: serial) != nil }
    }

    /// The number of the list in force.
    package func number(of kind: PeerKind) -> RevocationListNumber? {
        shelf.withLock { $0.lists[kind]?.number }
    }

    /// Reads the lists whose files changed.
    ///
    /// Cheap where none did: fit to be called every second.
    package func reload() -> Reloaded {
        var result = Reloaded()
        for (kind, source) in sources {
            let stamp = TrustFile.stamp(source.path)
            guard let stamp, stamp != shelf.withLock({ $0.stamps[kind] }) else { continue }
            do {
                let list = try RevocationBook.read(source)
                try shelf.withLock { shelf in
                    if let present = shelf.lists[kind], !list.mayFollow(present) {
                        throw TrustError(
                            .untrustedList,
                            "\(source.path) is older than the list in force, which stays: put the newer one back"
                        )
                    }
                    shelf.lists[kind] = list
                }
                result.changed.insert(kind)
            } catch let error as TrustError {
                result.failures.append(error)
            } catch {
                result.failures.append(TrustError(.untrustedList, "\(source.path) cannot be read"))
            }
            // Also for one that was refused: it is reported once.
            shelf.withLock { $0.stamps[kind] = stamp }
        }
        return result
    }

    /// Reads a list from PEM or DER.
    static func read(_ source: Source) throws -> RevocationList {
        let bytes = try TrustFile.read(source.path, .open)
        var der = bytes
        if bytes.starts(with: "-----BEGIN".utf8) {
            guard let document = try? PEMText.only("X509 CRL", in: bytes) else {
                throw TrustError(.untrustedList, "\(source.path) is not one PEM block of the kind X509 CRL")
            }
            der = document
        }
        do {
            return try RevocationList(der: der, authority: source.authority)
        } catch {
            throw TrustError(.untrustedList, "\(source.path) is no revocation list of its authority: \(error.words)")
        }
    }
}

extension RevocationList.Flaw {
    /// The flaw in words for the operator.
    var words: String {
        switch self {
        case .malformed: "it is not well-formed"
        case .algorithm: "its signature is of a kind that Herald does not read"
        case .issuer: "another authority issued it"
        case .signature: "its signature is wrong"
        case .partial: "it is indirect, a delta, or covers a part only"
        case .criticalExtension: "it has a critical extension that Herald does not know"
        }
    }
}
