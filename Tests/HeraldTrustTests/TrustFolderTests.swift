import Crypto
import Foundation
import HeraldIdentity
import HeraldModel
import HeraldTestSupport
import HeraldTrust
import SwiftASN1
import Testing
import X509

struct TrustFolderTests {
    private func mode(_ path: String) throws -> Int {
        let attributes = try FileManager.default.attributesOfItem(atPath: path)
        return (attributes[.posixPermissions] as? NSNumber)?.intValue ?? -1
    }

    private func names(_ trust: TestTrust) throws -> Set<String> {
        Set(try trust.folder.serverCertificate().names.map(\.description))
    }

    @Test func `only the owner can read secrets, and everyone can read public files`() async throws {
        let trust = try await TestTrust()
        let folder = trust.path + "/trust"
        #expect(try mode(folder) == 0o700)
        let open: Set<String> = ["provider.crl", "device.crl"]
        let files = try FileManager.default.contentsOfDirectory(atPath: folder)
        #expect(files.count == 12)
        for file in files {
            #expect(try mode(folder + "/" + file) == (open.contains(file) ? 0o644 : 0o600), "\(file)")
        }
        #expect(try mode(trust.path + "/ca.pem") == 0o644)
    }

    @Test func `ca pem has the root's certificate and no key`() async throws {
        let trust = try await TestTrust()
        let bundle = try PEMBundle(
            pem: Array(Data(contentsOf: URL(fileURLWithPath: trust.path + "/ca.pem"))),
            path: "ca.pem"
        )
        #expect(bundle.certificates == [trust.folder.root.certificate])
        #expect(bundle.key == nil)
    }

    @Test func `a second start changes nothing`() async throws {
        let trust = try await TestTrust(hostnames: ["push.example.com"])
        func content() throws -> [String: Data] {
            let names = try FileManager.default.contentsOfDirectory(atPath: trust.path + "/trust")
            return try names.reduce(into: [:]) {
                $0[$1] = try Data(contentsOf: URL(fileURLWithPath: trust.path + "/trust/" + $1))
            }
        }
        let before = try content()
        _ = try await trust.restart(hostnames: ["push.example.com"], now: trust.now)
        _ = try await trust.restart(now: trust.now + .seconds(86_400))
        #expect(try content() == before)
    }

    @Test func `the server certificate is signed by the root and has the expected names`() async throws {
        let trust = try await TestTrust(hostnames: ["push.example.com", "192.0.2.7", "2001:db8::7"])
        let certificate = try Certificate(derEncoded: try trust.folder.serverCertificate().chain[0])
        #expect(trust.folder.root.certificate.publicKey.isValidSignature(certificate.signature, for: certificate))
        #expect(try certificate.extensions.extendedKeyUsage?.contains(.serverAuth) == true)
        let expected: Set<String> = [
            "localhost", "127.0.0.1", "::1", "sandbox.localhost", "push.example.com", "192.0.2.7",
            "2001:db8::7",
        ]
        #expect(try names(trust).isSuperset(of: expected))
        let days = (certificate.notValidAfter.timeIntervalSince(certificate.notValidBefore)) / 86_400
        #expect(days < 825, "Apple's platforms refuse longer ones")
    }

    @Test func `added names stay`() async throws {
        let trust = try await TestTrust(hostnames: ["one.example.com"])
        _ = try await trust.restart(hostnames: ["Two.Example.com"], now: trust.now)
        #expect(try names(trust).isSuperset(of: ["one.example.com", "two.example.com", "localhost"]))
        #expect(try !trust.folder.serverCertificate().namesApple)
        _ = try await trust.restart(asApple: true, now: trust.now)
        #expect(
            try names(trust).isSuperset(of: [
                "one.example.com", "api.push.apple.com", "feedback.sandbox.push.apple.com",
            ])
        )
        #expect(try trust.folder.serverCertificate().namesApple)
        #expect(try trust.folder.server.publicName() == "one.example.com")
    }

    @Test(arguments: [[], ["192.0.2.1"], ["*.example.com"], ["sandbox.localhost"]])
    func `patterns, local names and Apple's names are not the public name`(hostnames: [String]) async throws {
        #expect(try await TestTrust(hostnames: hostnames).folder.server.publicName() == nil)
    }

    @Test(arguments: [
        "", " ", "a b", "-a.example", "a-.example", "a..b", ".a", "a.", "*", "a.*.b", "host:443", "https://host",
        "ä.example",
        "1.2.3.4.5.6:7", String(repeating: "a", count: 64), String(repeating: "a.", count: 130) + "a", "a/b", "a\n",
    ])
    func `a text that is neither a name nor an address is refused`(text: String) async {
        #expect(ServerName(text) == nil)
        await #expect(throws: TrustError(.invalidArgument, "")) {
            try await TrustFolder.create(
                at: NSTemporaryDirectory() + "/never",
                hostnames: [text],
                store: { _, _ in MemoryTrustStore() },
                now: .present
            )
        }
        #expect(!FileManager.default.fileExists(atPath: NSTemporaryDirectory() + "/never"))
    }

    @Test func `a start renews a server certificate that expires soon, and no other`() async throws {
        let trust = try await TestTrust()
        let first = try trust.folder.serverCertificate()
        _ = try await trust.restart(now: first.expires - .seconds(91 * 86_400))
        #expect(try trust.folder.serverCertificate().chain == first.chain)
        _ = try await trust.restart(now: first.expires - .seconds(89 * 86_400))
        #expect(try trust.folder.serverCertificate().expires > first.expires)
    }

    @Test func `a running service renews a server certificate that expires soon, and reports it`()
        async
        throws
    {
        let trust = try await TestTrust()
        let service = try await TrustService(folder: trust.folder)
        let first = try trust.folder.serverCertificate()
        try await trust.folder.server.renew(now: first.expires - .seconds(91 * 86_400))
        #expect(await !service.reload().serverCertificate)
        try await trust.folder.server.renew(now: first.expires - .seconds(89 * 86_400))
        #expect(await service.reload().serverCertificate)
        #expect(try trust.folder.serverCertificate().names == first.names)
    }

    @Test func `a certificate issued while the clock is ahead is valid at once`() async throws {
        let trust = try await TestTrust()
        let first = try trust.folder.serverCertificate()
        try await trust.folder.server.renew(now: first.expires + .seconds(365 * 86_400))
        let der = try #require(try trust.folder.serverCertificate().chain.first)
        #expect(try Certificate(derEncoded: der).notValidBefore < Date())
    }

    @Test func `the user's own server certificate stays unchanged`() async throws {
        let trust = try await TestTrust()
        let other = try await TestTrust(hostnames: ["own.example.com"])
        let own = try Data(contentsOf: URL(fileURLWithPath: other.path + "/trust/server.pem"))
        try TrustFile.write(Array(own), to: trust.path + "/trust/server.pem", .secret)
        let years = trust.now + .seconds(3 * 365 * 86_400)
        _ = try await trust.restart(hostnames: ["own.example.com"], now: years)
        #expect(try Data(contentsOf: URL(fileURLWithPath: trust.path + "/trust/server.pem")) == own)
        #expect(try !trust.folder.serverCertificate().isOurs)
        await #expect(throws: TrustError(.invalidArgument, "")) {
            try await trust.restart(hostnames: ["new.example.com"], now: trust.now)
        }
        let error = await #expect(throws: TrustError.self) { try await trust.restart(renewing: true) }
        #expect(error?.message.hasPrefix("another authority issued the certificate in") == true)
        #expect(try Data(contentsOf: URL(fileURLWithPath: trust.path + "/trust/server.pem")) == own)
    }

    @Test(arguments: [
        ("a.example.com", true), ("A.example.com", true), ("a.b.example.com", false), ("example.com", false),
    ])
    func `the user's own certificate may have a wildcard`(_ name: String, _ isNamed: Bool) async throws {
        let trust = try await TestTrust()
        let other = try await TestTrust(hostnames: ["*.example.com"])
        let own = try TrustFile.read(other.path + "/trust/server.pem", .secret)
        try TrustFile.write(own, to: trust.path + "/trust/server.pem", .secret)
        if isNamed {
            _ = try await trust.restart(hostnames: [name])
        } else {
            await #expect(throws: TrustError(.invalidArgument, "")) { try await trust.restart(hostnames: [name]) }
        }
    }

    @Test func `a lost authority of the user's certificate is not replaced by Herald's own`() async throws {
        let trust = try await TestTrust()
        let other = try await TestTrust()
        let own = try TrustFile.read(other.path + "/trust/server.pem", .secret)
        let authority = try TrustFile.read(other.path + "/ca.pem", .open)
        try TrustFile.write(own, to: trust.path + "/trust/server.pem", .secret)
        // Without a ledger it would be a first start.
        try TrustFile.write([], to: TrustLayout(data: trust.path).ledger, .secret)
        unlink(trust.path + "/ca.pem")
        let error = await #expect(throws: TrustError.self) { try await trust.restart() }
        #expect(error?.message.contains("another authority issued the certificate") == true)
        let former = try trust.folder.announcements.newest()
        // Nor are devices told of an authority that did not sign it.
        let root = try TrustFile.read(trust.path + "/trust/root.pem", .secret)
        let certificates = try PEMBundle(certificates: PEMBundle(pem: root, path: "root").certificates).pem()
        try TrustFile.write(Array(certificates.utf8), to: trust.path + "/ca.pem", .open)
        await #expect(throws: TrustError(.invalidArgument, "")) {
            try await trust.folder.announcements.renew(now: trust.now)
        }
        #expect(try trust.folder.announcements.newest() == former)
        try TrustFile.write(authority, to: trust.path + "/ca.pem", .open)
        try await trust.folder.announcements.followAuthorities(now: trust.now)
        #expect(try trust.folder.announcements.newest()?.content.authorities == other.folder.publicAuthorities())
    }

    @Test func `a command that changes the certificate leaves the announced addresses`() async throws {
        let trust = try await TestTrust()
        let address = ServiceEndpoint(host: "push.example.com", port: 5223, activation: 2191)
        /// As a start does, and as `herald init --renew` does.
        func create(_ addresses: [ServiceEndpoint]?, renewing: Bool) async throws -> SignedAnnouncement? {
            let folder = try await TrustFolder.create(
                at: trust.path,
                addresses: addresses,
                renewing: renewing,
                store: { _, _ in trust.store },
                now: trust.now
            )
            return try folder.announcements.newest()
        }
        let announced = try await create([address], renewing: false)
        #expect(announced?.content.addresses == [address])
        #expect(try await create(nil, renewing: true) == announced)
    }

    @Test func `a renewal on command makes another certificate with the same names, and more`() async throws {
        let trust = try await TestTrust(hostnames: ["push.example.com"])
        let first = try trust.folder.serverCertificate()
        _ = try await trust.restart()
        #expect(try trust.folder.serverCertificate().chain == first.chain)
        _ = try await trust.restart(renewing: true)
        let second = try trust.folder.serverCertificate()
        #expect(second.chain != first.chain && second.names == first.names && second.isOurs)
        _ = try await trust.restart(hostnames: ["new.example.com"], renewing: true)
        let added = try #require(ServerName("new.example.com"))
        #expect(try trust.folder.serverCertificate().names == first.names.union([added]))
    }

    @Test func `the user's own authority without its key verifies and cannot sign`() async throws {
        let trust = try await TestTrust()
        let other = try await TestTrust()
        let certificate = try PEMBundle(certificates: [other.folder.deviceAuthority.certificate]).pem()
        try TrustFile.write(Array(certificate.utf8), to: trust.path + "/trust/device-authority.pem", .secret)
        let list = try TrustFile.read(other.path + "/trust/device.crl", .open)
        try TrustFile.write(list, to: trust.path + "/trust/device.crl", .open)
        let folder = try await trust.restart()
        #expect(!folder.deviceAuthority.canSign)
        await #expect(throws: TrustError(.noSigningKey, "")) {
            try await folder.devices.enroll(name: nil, now: trust.now)
        }
        #expect(try await folder.devices.all().isEmpty, "a certificate that was not issued is not in the ledger")
        let peers = try await TrustService(folder: folder).peers
        let der = try TestCertificate.device("d1").der(other, .device)
        #expect(try peers.device(certificate: der, at: trust.now).get().id == DeviceID("d1"))
    }

    @Test func `the next start finishes an interrupted first start`() async throws {
        let trust = try await TestTrust()
        for lost in [
            ["ca.pem"], ["ca.pem", "trust/server.pem"], ["ca.pem", "trust/device.crl"],
        ] {
            for file in lost { try FileManager.default.removeItem(atPath: trust.path + "/" + file) }
            let folder = try await trust.restart()
            #expect(folder.root.certificate == trust.folder.root.certificate)
            _ = try await TrustService(folder: folder)
        }
    }

    @Test(arguments: [
        "root.pem", "provider-authority.pem", "device-authority.pem", "token.keys", "provider-keys.json",
    ])
    func `a missing file that cannot be made again is an error`(file: String) async throws {
        let trust = try await TestTrust()
        try FileManager.default.removeItem(atPath: trust.path + "/trust/" + file)
        await #expect(throws: TrustError(.missing, "")) {
            try await TrustService(folder: try await trust.restart())
        }
        #expect(!TrustFile.exists(trust.path + "/trust/" + file))
    }

    @Test(arguments: [
        "root.pem", "provider-authority.pem", "device-authority.pem", "server.pem", "token.keys", "provider-keys.json",
    ])
    func `a damaged file is refused and stays unchanged`(file: String) async throws {
        let trust = try await TestTrust()
        let path = trust.path + "/trust/" + file
        for content in ["garbage\n", "\u{0}\n", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"] {
            try TrustFile.write(Array(content.utf8), to: path, .secret)
            await #expect(throws: TrustError(.damaged, "")) {
                try await TrustService(folder: try await trust.restart())
            }
            #expect(try TrustFile.read(path, .secret) == Array(content.utf8))
        }
    }

    @Test(arguments: ["", "no certificate"])
    func `an invalid authority is refused and stays unchanged`(content: String) async throws {
        let trust = try await TestTrust()
        try TrustFile.write(Array(content.utf8), to: trust.path + "/ca.pem", .open)
        await #expect(throws: TrustError(.damaged, "")) { try await trust.restart() }
        #expect(try TrustFile.read(trust.path + "/ca.pem", .open) == Array(content.utf8))
    }

    @Test(arguments: [
        "root.pem", "provider-authority.pem", "device-authority.pem", "server.pem", "token.keys", "provider-keys.json",
    ])
    func `a secret that others can read aborts the start with the remedy`(file: String) async throws {
        let trust = try await TestTrust()
        let path = trust.path + "/trust/" + file
        for mode in [0o640, 0o604, 0o666, 0o610] as [mode_t] {
            chmod(path, mode)
            let error = await #expect(throws: TrustError.self) {
                try await TrustService(folder: try await trust.restart())
            }
            #expect(error?.code == .exposed)
            #expect(error?.message.contains("chmod 600 \(path)") == true)
        }
        chmod(path, 0o400)
        _ = try await TrustService(folder: try await trust.restart())
    }

    @Test func `a folder that others can enter aborts the start`() async throws {
        let trust = try await TestTrust()
        chmod(trust.path + "/trust", 0o750)
        let error = await #expect(throws: TrustError.self) { try await trust.restart() }
        #expect(error?.code == .exposed)
        #expect(error?.message.contains("chmod 700 \(trust.path)/trust") == true)
        #expect(throws: TrustError(.exposed, "")) { try TrustFolder.load(at: trust.path) { _, _ in trust.store } }
        chmod(trust.path + "/trust", 0o700)
    }

    @Test func `a list that others can write to is refused`() async throws {
        let trust = try await TestTrust()
        chmod(trust.path + "/trust/device.crl", 0o666)
        await #expect(throws: TrustError(.exposed, "")) { try await trust.service() }
    }

    @Test(.enabled(if: geteuid() == 0, "only the superuser can give a file away"))
    func `a file of another owner aborts the start`() async throws {
        let trust = try await TestTrust()
        chown(trust.path + "/trust/token.keys", 12_345, 12_345)
        await #expect(throws: TrustError(.foreignOwner, "")) { try await trust.service() }
    }

    @Test func `a link is not followed`() async throws {
        let trust = try await TestTrust()
        let path = trust.path + "/trust/token.keys"
        try FileManager.default.moveItem(atPath: path, toPath: path + ".real")
        try FileManager.default.createSymbolicLink(atPath: path, withDestinationPath: path + ".real")
        #expect(throws: TrustError(.unreadable, "")) { try trust.folder.tokenKeys() }
        await #expect(throws: TrustError(.unwritable, "")) {
            try FileManager.default.createSymbolicLink(
                atPath: trust.path + "/trust/lock.link",
                withDestinationPath: trust.path
            )
            try FileManager.default.removeItem(atPath: trust.path + "/trust/lock")
            try FileManager.default.createSymbolicLink(
                atPath: trust.path + "/trust/lock",
                withDestinationPath: trust.path + "/elsewhere"
            )
            _ = try await trust.restart()
        }
    }

    @Test func `without a service, loading creates nothing and says what to do`() {
        let path = NSTemporaryDirectory() + "/herald-test-none"
        let error = #expect(throws: TrustError.self) { try TrustFolder.load(at: path) { _, _ in MemoryTrustStore() } }
        #expect(error?.code == .folderMissing)
        #expect(error?.message.contains("herald init") == true)
        #expect(!FileManager.default.fileExists(atPath: path))
    }

    @Test func `a running service loads rotated token keys`() async throws {
        let trust = try await TestTrust()
        let service = try await trust.service()
        let contents = TokenContents(slot: Slot(device: DeviceNumber(1), app: AppNumber(1)), generation: 0)
        let old = service.seal.seal(contents)
        try await trust.folder.updateTokenKeys { try $0.rotate(now: trust.now) }
        #expect(await service.reload().tokenKeys)
        #expect(service.seal.seal(contents) != old)
        #expect(service.seal.open(old) == contents)
        #expect(await service.reload().isUnchanged)
    }

    @Test func `a running service finds a new server certificate`() async throws {
        let trust = try await TestTrust()
        let service = try await trust.service()
        _ = try await trust.restart(hostnames: ["new.example.com"], now: trust.now)
        #expect(await service.reload().serverCertificate)
        #expect(await service.reload().isUnchanged)
        try TrustFile.write(Array("garbage".utf8), to: trust.path + "/trust/server.pem", .secret)
        let reloaded = await service.reload()
        #expect(!reloaded.serverCertificate)
        #expect(reloaded.failures.all == [TrustError(.damaged, "")])
    }
}
