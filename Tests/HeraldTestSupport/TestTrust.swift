package import Crypto
import Foundation
package import HeraldModel
package import HeraldTrust
package import X509

/// A throw-away trust folder with its authorities, in a temporary directory that goes with it.
package final class TestTrust: Sendable {
    package let clock: ManualClock
    /// The data folder.
    package let path: String
    package let folder: TrustFolder

    /// Makes a folder as a first start does.
    ///
    /// The clock stands at the present moment unless the test brings another: TLS libraries read the machine's.
    package init(
        hostnames: [String] = [],
        asApple: Bool = false,
        clock: ManualClock = ManualClock(.present)
    ) throws {
        self.clock = clock
        path = NSTemporaryDirectory() + "/herald-test-" + UUID().uuidString.lowercased()
        folder = try TrustFolder.create(at: path, hostnames: hostnames, asApple: asApple, now: clock.now())
    }

    deinit {
        try? FileManager.default.removeItem(atPath: path)
    }

    package var now: WallTime { clock.now() }

    /// Trust as a running service has it.
    package func office(
        revocationPolicy: RevocationPolicy = RevocationPolicy(),
        unmarkedEnvironments: Set<PushEnvironment> = []
    ) throws -> TrustOffice {
        try TrustOffice(
            folder: folder,
            revocationPolicy: revocationPolicy,
            unmarkedEnvironments: unmarkedEnvironments
        )
    }

    /// The key of an authority, which the folder itself hides.
    package func signingKey(of kind: PeerKind) throws -> Certificate.PrivateKey {
        let path = folder.layout.folder + (kind == .provider ? "/provider-authority.pem" : "/device-authority.pem")
        guard let key = try PEMBundle(pem: try TrustFile.read(path, .secret), path: path).key else {
            throw TrustError(.missing, "\(path) holds no key")
        }
        return key
    }

    /// A device with its certificate and key in PEM.
    package func device(_ id: String? = nil) throws -> (device: EnrolledDevice, pem: String) {
        let issued = try folder.enrollDevice(name: nil, id: id.flatMap { DeviceID($0) }, now: now)
        return (issued.record, issued.pem)
    }

    /// A provider certificate with its key in PEM.
    package func provider(
        _ topics: String...,
        team: String? = nil,
        environments: Set<PushEnvironment> = [.production, .sandbox]
    ) throws -> (credential: Credential, pem: String) {
        let issued = try folder.issueProviderCertificate(
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
    ) throws -> TestProviderKey {
        let issued = try folder.makeProviderKey(
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

extension WallTime {
    /// What the machine's clock says, in whole seconds.
    package static var present: WallTime {
        WallTime(seconds: Int64(Date().timeIntervalSince1970))
    }
}
