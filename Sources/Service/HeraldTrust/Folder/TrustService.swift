import HeraldIdentity
package import HeraldModel
import Synchronization

/// The trust decisions of a running service: peers' certificates, provider tokens, device tokens, invitations.
///
/// All listeners share it, on any thread.
package final class TrustService: Sendable {
    /// The changes that a reload found.
    package struct Reloaded: Sendable {
        /// The kinds of peers whose revocation list has changed.
        ///
        /// Their listener creates a new TLS context, so that no earlier session is resumed. It checks its open connections
        /// (``TrustService/isRevoked(serial:of:)``).
        package var revocations: Set<PeerKind> = []
        /// Whether provider keys, topic claims or the topics of certificates have changed.
        ///
        /// Connections notice it by ``ProviderTokenVerifier/generation``.
        package var credentials = false
        package var tokenKeys = false
        /// Whether the server's certificate has changed; the listeners then create new TLS contexts.
        package var serverCertificate = false
        /// Whether `ca.pem` has changed, and devices are to be told.
        package var authorities = false
        /// Whether there is a new announcement for devices.
        package var announcement = false
        /// Parts that could not be read; their earlier content stays in effect.
        package var failures = ReloadFailures()

        package var isUnchanged: Bool {
            revocations.isEmpty && !credentials && !tokenKeys && !serverCertificate && !announcement
                && !authorities
        }
    }

    package let folder: TrustFolder
    package let seal: TokenSeal
    package let providerTokens: ProviderTokenVerifier
    /// Decides which team owns a topic that no team owned before.
    package let firstUses: FirstUses
    package let peers: PeerCertificateCheck

    /// The folder as it was read last.
    private struct State {
        /// The failure while there is no folder.
        var folderFailure: TrustError?
        var keyFile = FileReload()
        /// Without the console's own key, which a file cannot replace.
        var keys: [ProviderKey] = []
        var consoleKey: ProviderKey?
        var claims = TopicClaims(version: .min, [])
        var ledgerFailure: TrustError?
        var tokenKeys = FileReload()
        var server = FileReload()
        var authorityFile = FileReload()
        var authorities: [[UInt8]] = []
        var announcementFile = FileReload()
        var announcement: SignedAnnouncement?

        var credentials: CredentialTable {
            let keys = keys.filter { $0.id != ProviderKey.consoleID } + [consoleKey].compactMap(\.self)
            return CredentialTable(keys: keys, claims: claims)
        }
    }

    /// The changed parts of the ledger; nil for one that has not changed.
    package struct LedgerChanges: Sendable {
        let claims: TopicClaims?
        let revokedDevices: Set<DeviceID>?
    }

    /// The ledger's part of a reload.
    package typealias LedgerReading = Result<LedgerChanges, any Error>

    private let revocations: RevocationLists
    private let state: Mutex<State>

    /// Reads the folder, as ``TrustFolder/create(at:hostnames:listening:asApple:addresses:renewing:store:now:)`` opened
    /// it.
    ///
    /// `revocationPolicy` has the rules for a missing or overdue revocation list. For `unmarkedEnvironments`, see
    /// ``PeerCertificateCheck/unmarkedEnvironments``.
    /// - Throws: ``TrustError`` if a file cannot be read. A later ``reload()`` reports such a failure instead.
    package init(
        folder: TrustFolder,
        revocationPolicy: RevocationPolicy = RevocationPolicy(),
        unmarkedEnvironments: Set<PushEnvironment> = []
    ) async throws {
        self.folder = folder
        var (state, failures) = (State(), ReloadFailures())
        let ring = state.tokenKeys.read(folder.layout.tokenKeys, &failures, folder.tokenKeys)
        _ = state.server.read(folder.layout.server, &failures, folder.serverCertificate)
        state.claims = try await folder.store.topicClaims(after: nil) ?? state.claims
        _ = TrustService.reloadKeys(&state, folder, &failures)
        _ = TrustService.reloadAuthorities(&state, folder, &failures)
        if let failure = failures.all.first { throw failure }
        guard let ring else { throw TrustError(.missing, "\(folder.layout.tokenKeys) is missing") }
        seal = TokenSeal(keys: ring)
        providerTokens = ProviderTokenVerifier(credentials: state.credentials)
        firstUses = FirstUses(tokens: providerTokens)
        self.state = Mutex(state)
        revocations = folder.revocationLists(policy: revocationPolicy)
        if let devices = try await folder.store.revokedDevices(after: 0) { revocations.add(devices) }
        if let failure = revocations.reload().failures.all.first { throw failure }
        peers = PeerCertificateCheck(
            providers: folder.providerAuthority,
            devices: folder.deviceAuthority,
            revocations: revocations,
            unmarkedEnvironments: unmarkedEnvironments
        )
    }

    /// Whether the certificate of an open connection has been revoked meanwhile.
    package func isRevoked(serial: String, of kind: PeerKind) -> Bool {
        revocations.isRevoked(serial: serial, of: kind)
    }

    /// Whether the device of an open connection has been revoked meanwhile, or its certificate.
    package func isRevoked(_ device: DeviceIdentity) -> Bool {
        revocations.isRevoked(device.id) || isRevoked(serial: device.serial, of: .device)
    }

    package func revocationListValidity(of kind: PeerKind, now: WallTime) -> RevocationLists.Validity {
        revocations.validity(of: kind, now: now)
    }

    /// Whether a credential names a topic, or a team owns it.
    ///
    /// A credential counts until it is revoked. A certificate of an authority of the operator's own is not in the ledger, and
    /// counts once its team owns the topic.
    package func isKnown(_ topic: Topic) -> Bool {
        providerTokens.credentials.isKnown(topic)
    }

    /// Whether peers are accepted without a revocation list.
    package var mayLackRevocationList: Bool { revocations.mayLackList }

    /// The certificates (DER) that a new device gets: the authorities of the devices and of the service.
    package var authorities: [[UInt8]] { state.withLock { $0.authorities } }

    /// The newest announcement to devices; nil before the first.
    package var announcement: SignedAnnouncement? { state.withLock { $0.announcement } }

    /// Reads the folder's changes.
    package func reload() async -> Reloaded {
        reload(await readLedger())
    }

    /// Reads the changes of the ledger.
    package func readLedger() async -> LedgerReading {
        let version = state.withLock { $0.claims.version }
        do {
            return .success(
                LedgerChanges(
                    claims: try await folder.store.topicClaims(after: version),
                    revokedDevices: try await folder.store.revokedDevices(after: revocations.revokedDevices)
                )
            )
        } catch {
            return .failure(error)
        }
    }

    /// Reads the changed files of the folder, and takes over what was read of the ledger; nil if it was not read.
    ///
    /// Cheap without changes, so it can run every second, but not on event loops.
    package func reload(_ ledger: LedgerReading?) -> Reloaded {
        // Under the lock, so that an older read never overwrites a newer one.
        state.withLock { state in
            // One failure for all files of a folder that was deleted or moved.
            let (former, announced) = (state.folderFailure, state.announcement)
            state.folderFailure = TrustService.failureOfFolder(folder.layout)
            if let failure = state.folderFailure {
                var result = Reloaded()
                result.failures.add(failure, after: former)
                return result
            }
            let lists = revocations.reload()
            var result = Reloaded(revocations: lists.changed, failures: lists.failures)
            if case .success(let ledger)? = ledger, let devices = ledger.revokedDevices, revocations.add(devices) {
                result.revocations.insert(.device)
            }
            let haveKeysChanged = TrustService.reloadKeys(&state, folder, &result.failures)
            let haveClaimsChanged = TrustService.takeOver(ledger, &state, &result.failures)
            if haveKeysChanged || haveClaimsChanged {
                providerTokens.replaceCredentials(state.credentials)
                result.credentials = true
            }
            if let ring = state.tokenKeys.read(folder.layout.tokenKeys, &result.failures, folder.tokenKeys) {
                seal.replaceKeys(ring)
                result.tokenKeys = true
            }
            // Reported only if the listeners can read it.
            let server = state.server.read(folder.layout.server, &result.failures, folder.serverCertificate)
            result.serverCertificate = server != nil
            result.authorities = TrustService.reloadAuthorities(&state, folder, &result.failures)
            result.announcement = state.announcement != announced
            return result
        }
    }

    private static func failureOfFolder(_ layout: TrustLayout) -> TrustError? {
        guard !TrustFile.exists(layout.folder) else { return nil }
        return TrustError(
            .folderMissing,
            "the folder \(layout.folder) is missing: if it was moved, move it back; otherwise stop the service, and restore "
                + "a backup (docs/operations/backup.md)"
        )
    }

    /// Claims the topics of first uses until the task is cancelled; `report` gets the events for the operator's log.
    package func claimFirstUses(
        clock: any WallClock,
        _ report: @Sendable (FirstUses.Event) -> Void
    ) async {
        await firstUses.run({ try await self.claim($0, now: clock.now()) }, report)
    }

    private func claim(_ use: TopicUse, now: WallTime) async throws {
        let claim = TopicClaim(use.topic, team: use.team, origin: .use, since: now)
        try await folder.store.claim([claim], takesOver: false)
        let version = state.withLock { $0.claims.version }
        guard let claims = try await folder.store.topicClaims(after: version) else { return }
        state.withLock { state in
            guard claims.version > state.claims.version else { return }
            state.claims = claims
            providerTokens.replaceCredentials(state.credentials)
        }
    }

    /// The key with which the console sends; nil until it has sent.
    package var consoleKey: ProviderKey? { state.withLock { $0.consoleKey } }

    /// Lets the console send with a key that no file has.
    package func admitConsole(_ key: ProviderKey) {
        state.withLock { state in
            state.consoleKey = key
            providerTokens.replaceCredentials(state.credentials)
        }
    }

    private static func reloadKeys(
        _ state: inout State,
        _ folder: TrustFolder,
        _ failures: inout ReloadFailures
    ) -> Bool {
        guard let keys = state.keyFile.read(folder.layout.providerKeys, &failures, folder.providerKeys) else {
            return false
        }
        state.keys = keys
        return true
    }

    private static func takeOver(
        _ ledger: LedgerReading?,
        _ state: inout State,
        _ failures: inout ReloadFailures
    ) -> Bool {
        let former = state.ledgerFailure
        guard let ledger else {
            failures.add(former, after: former)
            return false
        }
        do {
            state.ledgerFailure = nil
            // Another reload may have read a newer version meanwhile.
            guard let claims = try ledger.get().claims, claims.version > state.claims.version else { return false }
            defer { state.claims = claims }
            return claims.all != state.claims.all || claims.certificateTopics != state.claims.certificateTopics
                || claims.credentials != state.claims.credentials
        } catch {
            state.ledgerFailure = error as? TrustError ?? TrustError(.unexpected, "the ledger cannot be read")
            failures.add(state.ledgerFailure, after: former)
            return false
        }
    }

    private static func reloadAuthorities(
        _ state: inout State,
        _ folder: TrustFolder,
        _ failures: inout ReloadFailures
    ) -> Bool {
        let announced = state.announcementFile.read(
            folder.layout.announcement,
            isOptional: true,
            &failures,
            folder.announcements.newest
        )
        if let announced { state.announcement = announced }
        let service = state.authorityFile.read(folder.layout.authority, &failures, folder.publicAuthorities)
        if let service { state.authorities = [folder.deviceAuthority.der] + service }
        return service != nil
    }
}
