package import Crypto
import Foundation
import HeraldIdentity
package import HeraldModel
package import HeraldTrust
package import X509

/// A temporary trust folder with its authorities, deleted with this object.
package final class TestTrust: Sendable {
    package let clock: ManualClock
    /// The data folder.
    package let path: String
    package let folder: TrustFolder
    package let store = MemoryTrustStore()

    /// Creates a folder as a first start does.
    ///
    /// By default the clock is at the present, because TLS libraries read the machine's clock.
    package init(
        hostnames: [String] = [],
        asApple: Bool = false,
        clock: ManualClock = ManualClock(.present)
    ) async throws {
        self.clock = clock
        path = NSTemporaryDirectory() + "/herald-test-" + UUID().uuidString.lowercased()
        folder = try await TrustFolder.create(
            at: path,
            hostnames: hostnames,
            asApple: asApple,
            addresses: [],
            store: { [store] _, _ in store },
            now: clock.now()
        )
    }

    deinit {
        try? FileManager.default.removeItem(atPath: path)
    }

    package var now: WallTime { clock.now() }

    /// Opens the folder as a later start does.
    package func restart(
        hostnames: [String] = [],
        asApple: Bool = false,
        renewing: Bool = false,
        now: WallTime? = nil
    ) async throws -> TrustFolder {
        try await TrustFolder.create(
            at: path,
            hostnames: hostnames,
            asApple: asApple,
            addresses: [],
            renewing: renewing,
            store: { [store] _, _ in store },
            now: now ?? clock.now()
        )
    }

    /// The trust decisions of a running service.
    package func service(
        revocationPolicy: RevocationPolicy = RevocationPolicy(),
        unmarkedEnvironments: Set<PushEnvironment> = []
    ) async throws -> TrustService {
        try await TrustService(
            folder: folder,
            revocationPolicy: revocationPolicy,
            unmarkedEnvironments: unmarkedEnvironments
        )
    }

    /// The private key of an authority, which the folder hides.
    package func signingKey(of kind: PeerKind) throws -> Certificate.PrivateKey {
        let path = folder.layout.folder + (kind == .provider ? "/provider-authority.pem" : "/device-authority.pem")
        guard let key = try PEMBundle(pem: try TrustFile.read(path, .secret), path: path).key else {
            throw TrustError(.missing, "\(path) holds no key")
        }
        return key
    }

    /// A device with its certificate and key in PEM.
    package func device(_ id: String? = nil) async throws -> (device: EnrolledDevice, pem: String) {
        let issued = try await folder.devices.enroll(name: nil, id: id.flatMap { DeviceID($0) }, now: now)
        return (issued.record, issued.pem)
    }

    /// A provider certificate with its key in PEM.
    package func provider(
        _ topics: String...,
        team: String? = nil,
        environments: Set<PushEnvironment> = [.production, .sandbox]
    ) async throws -> (credential: Credential, pem: String) {
        let issued = try await folder.providers.issueCertificate(
            topics: topics.compactMap { Topic($0) },
            team: team,
            environments: environments,
            now: now
        )
        return (issued.record, issued.pem)
    }

    /// A key that signs provider tokens.
    package func providerKey(
        _ topics: String...,
        team: String = "TEAM000001",
        environments: Set<PushEnvironment> = [.production, .sandbox]
    ) async throws -> TestProviderKey {
        let issued = try await folder.providers.makeKey(
            team: team,
            topics: topics.compactMap { Topic($0) },
            environments: environments,
            now: now
        )
        return TestProviderKey(
            id: issued.credential.id,
            team: team,
            secret: try P256.Signing.PrivateKey(pemRepresentation: issued.pem)
        )
    }
}

/// A provider key with its private half.
package struct TestProviderKey: Sendable {
    package let id: String
    package let team: String
    package let secret: P256.Signing.PrivateKey

    package init(id: String, team: String, secret: P256.Signing.PrivateKey) {
        self.id = id
        self.team = team
        self.secret = secret
    }

    /// A token issued at a moment.
    package func token(issued: WallTime) throws -> String {
        try ProviderToken.sign(key: secret, keyID: id, team: team, issued: issued)
    }
}

extension ProviderTokenVerifier {
    /// Whether the holder of a valid token may send to a topic now.
    package func mayPush(_ topic: Topic, as identity: ProviderTokenIdentity) -> Bool {
        permission(for: topic, team: identity.team, scope: identity.topics) != .refused
    }
}

extension CredentialTable {
    /// Whether a key of the whole team may send to a topic.
    package func mayPush(topic: Topic, team: String) -> Bool {
        claims.owner(of: topic) ?? team == team
    }
}

extension WallTime {
    /// The time of the machine's clock, in whole seconds.
    package static var present: WallTime {
        WallTime(seconds: Int64(Date().timeIntervalSince1970))
    }
}
