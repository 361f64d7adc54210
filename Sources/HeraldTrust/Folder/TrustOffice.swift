package import HeraldModel
import Synchronization

/// Trust as a running service needs it: who a peer is, what a provider token and a device token are worth.
///
/// For all doors, from any thread.
package final class TrustOffice: Sendable {
    /// What came of reading the folder again.
    package struct Reloaded: Sendable {
        /// The peers whose revocation list is another now.
        ///
        /// Their door makes its TLS context anew, so that no session from before is resumed, and looks its open
        /// connections over (``TrustOffice/isRevoked(serial:of:)``).
        package var revocations: Set<PeerKind> = []
        /// Whether provider keys or claims to topics changed; connections ask anew by themselves
        /// (``ProviderTokenVerifier/generation``).
        package var credentials = false
        package var tokenKeys = false
        /// Whether the server's certificate is another: the doors make their TLS contexts anew.
        package var serverCertificate = false
        /// What could not be read; the former state of it stays in force.
        package var failures: [TrustError] = []

        package var isUnchanged: Bool {
            revocations.isEmpty && !credentials && !tokenKeys && !serverCertificate
        }
    }

    package let folder: TrustFolder
    package let seal: TokenSeal
    package let providerTokens: ProviderTokenVerifier
    package let peers: PeerVerifier
    package let invitations: InvitationBook

    /// What was read last.
    private struct State {
        var providerKeys: TrustFile.Stamp?
        var ledger: TrustFile.Stamp?
        var claims: Set<CredentialBook.Claim>
        var tokenKeys: TrustFile.Stamp?
        var server: TrustFile.Stamp?
    }

    private let revocations: RevocationBook
    private let state: Mutex<State>

    /// Reads all of it.
    /// - Parameters:
    ///   - folder: The folder, as ``TrustFolder/create(at:hostnames:asApple:now:)`` opened it.
    ///   - revocationPolicy: What is done without a current revocation list.
    ///   - unmarkedEnvironments: See ``PeerVerifier/unmarkedEnvironments``.
    /// - Throws: ``TrustError`` if anything in the folder cannot be read; at run time that is no reason to stop any more.
    package init(
        folder: TrustFolder,
        revocationPolicy: RevocationPolicy = RevocationPolicy(),
        unmarkedEnvironments: Set<PushEnvironment> = []
    ) throws {
        self.folder = folder
        // Stamps before contents: a change in between is then seen by the next reload.
        var state = State(
            providerKeys: TrustFile.stamp(folder.layout.providerKeys),
            ledger: TrustFile.stamp(folder.layout.ledger),
            claims: [],
            tokenKeys: TrustFile.stamp(folder.layout.tokenKeys),
            server: TrustFile.stamp(folder.layout.server)
        )
        state.claims = try folder.certificateClaims()
        invitations = InvitationBook(try folder.invitations())
        providerTokens = ProviderTokenVerifier(
            book: CredentialBook(keys: try folder.providerKeys(), certificateClaims: state.claims)
        )
        seal = TokenSeal(keys: try folder.tokenKeys())
        self.state = Mutex(state)
        revocations = folder.revocationBook(policy: revocationPolicy)
        if let failure = revocations.reload().failures.first { throw failure }
        peers = PeerVerifier(
            providers: folder.providerAuthority,
            devices: folder.deviceAuthority,
            revocations: revocations,
            unmarkedEnvironments: unmarkedEnvironments
        )
    }

    /// Whether the holder of an open connection is revoked meanwhile; `serial` is as its identity has it.
    package func isRevoked(serial: String, of kind: PeerKind) -> Bool {
        revocations.isRevoked(serial: serial, of: kind)
    }

    /// How far the revocation list of one kind of peers may be relied on.
    package func revocationStanding(of kind: PeerKind, now: WallTime) -> RevocationBook.Standing {
        revocations.standing(of: kind, now: now)
    }

    /// Whether peers of that kind are let in where there is no revocation list at all.
    package var mayLackRevocationList: Bool { revocations.mayLackList }

    /// Reads what changed in the folder.
    ///
    /// Cheap where nothing did: fit to be called every second. Not for event loops.
    package func reload() -> Reloaded {
        // One at a time, or of two the one that read first might have the last word.
        state.withLock { state in
            let lists = revocations.reload()
            var result = Reloaded(revocations: lists.changed, failures: lists.failures)
            do {
                result.credentials = try reloadCredentials(&state)
            } catch {
                result.failures.append(TrustOffice.failure(error))
            }
            do {
                result.tokenKeys = try reloadTokenKeys(&state)
                result.serverCertificate = try reloadServerCertificate(&state)
            } catch {
                result.failures.append(TrustOffice.failure(error))
            }
            return result
        }
    }

    /// Devices are in the ledger too; what was enrolled is no reason to forget provider tokens.
    private func reloadCredentials(_ state: inout State) throws -> Bool {
        let providerKeys = TrustFile.stamp(folder.layout.providerKeys)
        let ledger = TrustFile.stamp(folder.layout.ledger)
        guard providerKeys != state.providerKeys || ledger != state.ledger else { return false }
        let haveKeysChanged = providerKeys != state.providerKeys
        // Also where reading fails: it is reported once.
        state.providerKeys = providerKeys
        state.ledger = ledger
        invitations.replace(try folder.invitations())
        let claims = try folder.certificateClaims()
        guard haveKeysChanged || claims != state.claims else { return false }
        providerTokens.replaceBook(CredentialBook(keys: try folder.providerKeys(), certificateClaims: claims))
        state.claims = claims
        return true
    }

    private func reloadTokenKeys(_ state: inout State) throws -> Bool {
        let stamp = TrustFile.stamp(folder.layout.tokenKeys)
        guard stamp != state.tokenKeys else { return false }
        state.tokenKeys = stamp
        seal.replaceKeys(try folder.tokenKeys())
        return true
    }

    private func reloadServerCertificate(_ state: inout State) throws -> Bool {
        let stamp = TrustFile.stamp(folder.layout.server)
        guard stamp != state.server else { return false }
        state.server = stamp
        // Said to be another only if the doors will be able to read it.
        _ = try folder.serverCertificate()
        return true
    }

    private static func failure(_ error: any Error) -> TrustError {
        error as? TrustError ?? TrustError(.unexpected, "the trust folder cannot be read again")
    }
}
