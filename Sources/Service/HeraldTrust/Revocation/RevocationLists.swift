import Foundation
import HeraldIdentity
package import HeraldModel
import Synchronization
package import X509

/// The kinds of peers with certificates.
package enum PeerKind: String, Hashable, Sendable, CaseIterable {
    case provider
    case device
}

/// The rules for a missing or overdue revocation list.
package struct RevocationPolicy: Hashable, Sendable {
    /// Time after its `nextUpdate` in which a list is still valid; afterwards peers are refused.
    package var grace: Duration
    /// Whether peers are accepted without a list, for users' own authorities that publish none.
    package var mayBeMissing: Bool

    package init(grace: Duration = .zero, mayBeMissing: Bool = false) {
        self.grace = grace
        self.mayBeMissing = mayBeMissing
    }
}

/// The certificate revocation lists (CRLs) of a running service, shared by all threads.
///
/// Only a newer list replaces the present one. A list that is unreadable, of another authority, or older is reported, and
/// the present one stays. An unreadable list is read again until it can be read.
package final class RevocationLists: Sendable {
    /// The file of a list, and the authority that signs it.
    struct Source: Sendable {
        let path: String
        let authority: CertificateAuthority
    }

    /// The result of looking up a serial number.
    package enum Status: Hashable, Sendable {
        case good
        case revoked(since: WallTime)
        /// There is no valid list.
        case unknown
    }

    /// The changes that a reload found.
    package struct Reloaded: Sendable {
        /// The kinds of peers whose list has changed: their connections need a check, and their listener a new TLS context.
        package var changed: Set<PeerKind> = []
        package var failures = ReloadFailures()
    }

    package enum Validity: Hashable, Sendable {
        /// Valid until its successor is due; nil if it has no such time.
        case current(until: WallTime?)
        /// Its successor was due and the grace is over, so new connections are refused.
        case overdue(since: WallTime)
        /// There is no list.
        case missing
    }

    private struct State {
        var lists: [PeerKind: RevocationList] = [:]
        var files: [PeerKind: FileReload] = [:]
        var devices: Set<DeviceID> = []
    }

    private let sources: [PeerKind: Source]
    private let policy: RevocationPolicy
    private let state = Mutex(State())

    init(sources: [PeerKind: Source], policy: RevocationPolicy) {
        self.sources = sources
        self.policy = policy
    }

    /// Refuses a revoked certificate.
    ///
    /// ``PeerCertificateCheck`` calls this after every TLS handshake, resumed sessions included.
    func check(
        _ serial: Certificate.SerialNumber,
        of kind: PeerKind,
        now: WallTime
    ) throws(PeerRefusal) {
        switch status(serial, of: kind, now: now) {
        case .good: break
        case .revoked: throw PeerRefusal(.revoked, "the certificate is revoked")
        case .unknown: throw PeerRefusal(.revocationUnknown, "there is no current list of revoked certificates")
        }
    }

    /// Refuses a revoked device, whichever certificate it has: the ledger may lack some of them, after a restore.
    func check(_ device: DeviceID) throws(PeerRefusal) {
        guard !isRevoked(device) else { throw PeerRefusal(.revoked, "the device is revoked") }
    }

    /// Whether a device has been revoked.
    package func isRevoked(_ device: DeviceID) -> Bool {
        state.withLock { $0.devices.contains(device) }
    }

    /// The number of revoked devices.
    var revokedDevices: Int { state.withLock { $0.devices.count } }

    /// Adds revoked devices: no revocation is ever taken back.
    /// - Returns: Whether there are new ones.
    @discardableResult
    func add(_ devices: Set<DeviceID>) -> Bool {
        state.withLock { state in
            let former = state.devices.count
            state.devices.formUnion(devices)
            return state.devices.count > former
        }
    }

    package func status(_ serial: Certificate.SerialNumber, of kind: PeerKind, now: WallTime) -> Status {
        state.withLock { state in
            guard let list = state.lists[kind] else { return policy.mayBeMissing ? .good : .unknown }
            if let since = list.revoked(serial) { return .revoked(since: since) }
            if let due = list.nextUpdate, now > due + policy.grace { return .unknown }
            return .good
        }
    }

    /// Whether peers are accepted without a list.
    var mayLackList: Bool { policy.mayBeMissing }

    package func validity(of kind: PeerKind, now: WallTime) -> Validity {
        guard let list = state.withLock({ $0.lists[kind] }) else { return .missing }
        if let due = list.nextUpdate, now > due + policy.grace { return .overdue(since: due) }
        return .current(until: list.nextUpdate)
    }

    /// Whether the certificate of an open connection has been revoked meanwhile.
    package func isRevoked(serial: String, of kind: PeerKind) -> Bool {
        state.withLock { $0.lists[kind]?.revoked(serial: serial) != nil }
    }

    /// Reads the lists whose files have changed, or could not be read before.
    ///
    /// Cheap without changes, so it can run every second. Only one thread at a time may call it.
    package func reload() -> Reloaded {
        var result = Reloaded()
        for (kind, source) in sources {
            var file = state.withLock { $0.files[kind] } ?? FileReload()
            let list = file.read(source.path, isOptional: true, &result.failures) {
                let list = try RevocationLists.read(source)
                try replace(kind, by: list, source)
                return list
            }
            state.withLock { $0.files[kind] = file }
            if list != nil { result.changed.insert(kind) }
        }
        return result
    }

    private func replace(_ kind: PeerKind, by list: RevocationList, _ source: Source) throws {
        try state.withLock { state in
            if let present = state.lists[kind], !list.mayFollow(present) {
                throw TrustError(
                    .untrustedList,
                    "\(source.path) is older than the list in memory, which stays in effect: restore the newer file"
                )
            }
            state.lists[kind] = list
        }
    }

    /// Reads a list from PEM or DER.
    static func read(_ source: Source) throws -> RevocationList {
        let bytes = try TrustFile.read(source.path, .open)
        let der: [UInt8]
        do {
            // A DER file of megabytes is not parsed twice.
            der = bytes.first == 0x30 ? bytes : try PEMFile(bytes).revocationList()
        } catch {
            throw TrustError(.untrustedList, "\(source.path) is not a revocation list of its authority: \(error)")
        }
        do {
            return try RevocationList(der: der, authority: source.authority)
        } catch {
            throw TrustError(.untrustedList, "\(source.path) is not a revocation list of its authority: \(error.words)")
        }
    }
}

extension RevocationList.ParseError {
    /// The reason, for the operator.
    var words: String {
        switch self {
        case .malformed: "it is malformed"
        case .algorithm: "its signature algorithm is not supported"
        case .issuer: "another authority issued it"
        case .signature: "its signature is wrong"
        case .partial: "it is indirect, a delta, or partial"
        case .criticalExtension: "it has an unknown critical extension"
        }
    }
}
