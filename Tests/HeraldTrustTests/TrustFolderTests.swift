import Crypto
import Foundation
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

    @Test func `secrets are for their owner alone, and what everybody needs is open`() throws {
        let trust = try TestTrust()
        let folder = trust.path + "/trust"
        #expect(try mode(folder) == 0o700)
        let open: Set<String> = ["provider.crl", "device.crl"]
        let files = try FileManager.default.contentsOfDirectory(atPath: folder)
        #expect(files.count == 11)
        for file in files {
            #expect(try mode(folder + "/" + file) == (open.contains(file) ? 0o644 : 0o600), "\(file)")
        }
        #expect(try mode(trust.path + "/ca.pem") == 0o644)
    }

    @Test func `ca pem holds the root's certificate and no key`() throws {
        let trust = try TestTrust()
        let bundle = try PEMBundle(
            pem: Array(Data(contentsOf: URL(fileURLWithPath: trust.path + "/ca.pem"))),
            path: "ca.pem"
        )
        #expect(bundle.certificates == [trust.folder.root.certificate])
        #expect(bundle.key == nil)
    }

    @Test func `a second start changes nothing`() throws {
        let trust = try TestTrust(hostnames: ["push.example.com"])
        func content() throws -> [String: Data] {
            let names = try FileManager.default.contentsOfDirectory(atPath: trust.path + "/trust")
            return try names.reduce(into: [:]) {
                $0[$1] = try Data(contentsOf: URL(fileURLWithPath: trust.path + "/trust/" + $1))
            }
        }
        let before = try content()
        _ = try TrustFolder.create(at: trust.path, hostnames: ["push.example.com"], now: trust.now)
        _ = try TrustFolder.create(at: trust.path, now: trust.now + .seconds(86_400))
        #expect(try content() == before)
    }

    @Test func `the server certificate is signed by the root and names what it should`() throws {
        let trust = try TestTrust(hostnames: ["push.example.com", "192.0.2.7", "2001:db8::7"])
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

    @Test func `names are added, and stay`() throws {
        let trust = try TestTrust(hostnames: ["one.example.com"])
        _ = try TrustFolder.create(at: trust.path, hostnames: ["Two.Example.com"], now: trust.now)
        #expect(try names(trust).isSuperset(of: ["one.example.com", "two.example.com", "localhost"]))
        #expect(try !trust.folder.serverCertificate().namesApple)
        _ = try TrustFolder.create(at: trust.path, asApple: true, now: trust.now)
        #expect(
            try names(trust).isSuperset(of: [
                "one.example.com", "api.push.apple.com", "feedback.sandbox.push.apple.com",
            ])
        )
        #expect(try trust.folder.serverCertificate().namesApple)
        #expect(try trust.folder.nameForOthers() == "one.example.com")
    }

    @Test(arguments: [[], ["192.0.2.1"], ["*.example.com"], ["sandbox.localhost"]])
    func `what other machines cannot call the service by is not told them`(hostnames: [String]) throws {
        #expect(try TestTrust(hostnames: hostnames).folder.nameForOthers() == nil)
    }

    @Test(arguments: [
        "", " ", "a b", "-a.example", "a-.example", "a..b", ".a", "a.", "*", "a.*.b", "host:443", "https://host",
        "ä.example",
        "1.2.3.4.5.6:7", String(repeating: "a", count: 64), String(repeating: "a.", count: 130) + "a", "a/b", "a\n",
    ])
    func `what is neither a name nor an address is refused`(text: String) {
        #expect(ServerName(text) == nil)
        #expect(throws: TrustError(.invalidArgument, "")) {
            try TrustFolder.create(at: NSTemporaryDirectory() + "/never", hostnames: [text], now: .present)
        }
        #expect(!FileManager.default.fileExists(atPath: NSTemporaryDirectory() + "/never"))
    }

    @Test func `a server certificate near its end is exchanged at a start, and not before`() throws {
        let trust = try TestTrust()
        let first = try trust.folder.serverCertificate()
        _ = try TrustFolder.create(at: trust.path, now: first.expires - .seconds(91 * 86_400))
        #expect(try trust.folder.serverCertificate().chain == first.chain)
        _ = try TrustFolder.create(at: trust.path, now: first.expires - .seconds(89 * 86_400))
        #expect(try trust.folder.serverCertificate().expires > first.expires)
    }

    @Test func `a server certificate near its end is exchanged while the service runs, and its office tells of it`()
        throws
    {
        let trust = try TestTrust()
        let office = try TrustOffice(folder: trust.folder)
        let first = try trust.folder.serverCertificate()
        try trust.folder.renewServerCertificate(now: first.expires - .seconds(91 * 86_400))
        #expect(!office.reload().serverCertificate)
        try trust.folder.renewServerCertificate(now: first.expires - .seconds(89 * 86_400))
        #expect(office.reload().serverCertificate)
        #expect(try trust.folder.serverCertificate().names == first.names)
    }

    @Test func `a certificate made under a clock that was moved ahead is good at once`() throws {
        let trust = try TestTrust()
        let first = try trust.folder.serverCertificate()
        try trust.folder.renewServerCertificate(now: first.expires + .seconds(365 * 86_400))
        let der = try #require(try trust.folder.serverCertificate().chain.first)
        #expect(try Certificate(derEncoded: der).notValidBefore < Date())
    }

    @Test func `a server certificate of the user's own is left alone`() throws {
        let trust = try TestTrust()
        let other = try TestTrust(hostnames: ["own.example.com"])
        let own = try Data(contentsOf: URL(fileURLWithPath: other.path + "/trust/server.pem"))
        try TrustFile.write(Array(own), to: trust.path + "/trust/server.pem", .secret)
        let years = trust.now + .seconds(3 * 365 * 86_400)
        _ = try TrustFolder.create(at: trust.path, hostnames: ["own.example.com"], now: years)
        #expect(try Data(contentsOf: URL(fileURLWithPath: trust.path + "/trust/server.pem")) == own)
        #expect(try !trust.folder.serverCertificate().isOurs)
        #expect(throws: TrustError(.invalidArgument, "")) {
            try TrustFolder.create(at: trust.path, hostnames: ["new.example.com"], now: trust.now)
        }
    }

    @Test func `an authority of the user's own, without its key, verifies and cannot sign`() throws {
        let trust = try TestTrust()
        let other = try TestTrust()
        let certificate = try PEMBundle(certificates: [other.folder.deviceAuthority.certificate]).pem()
        try TrustFile.write(Array(certificate.utf8), to: trust.path + "/trust/device-authority.pem", .secret)
        let list = try TrustFile.read(other.path + "/trust/device.crl", .open)
        try TrustFile.write(list, to: trust.path + "/trust/device.crl", .open)
        let folder = try TrustFolder.create(at: trust.path, now: trust.now)
        #expect(!folder.deviceAuthority.canSign)
        #expect(throws: TrustError(.noSigningKey, "")) { try folder.enrollDevice(name: nil, now: trust.now) }
        #expect(try folder.enrolledDevices().isEmpty, "what was not issued is not on record")
        let peers = try TrustOffice(folder: folder).peers
        let der = try TestCertificate.device("d1").der(other, .device)
        #expect(try peers.device(certificate: der, at: trust.now).get().id == DeviceID("d1"))
    }

    @Test func `a first start that was cut short is finished by the next`() throws {
        let trust = try TestTrust()
        for lost in [
            ["ca.pem"], ["ca.pem", "trust/server.pem"], ["ca.pem", "trust/ledger.jsonl", "trust/device.crl"],
        ] {
            for file in lost { try FileManager.default.removeItem(atPath: trust.path + "/" + file) }
            let folder = try TrustFolder.create(at: trust.path, now: trust.now)
            #expect(folder.root.certificate == trust.folder.root.certificate)
            _ = try TrustOffice(folder: folder)
        }
    }

    @Test(arguments: [
        "root.pem", "provider-authority.pem", "device-authority.pem", "token.keys", "provider-keys.json",
        "ledger.jsonl",
    ])
    func `what cannot be made again is missed, not replaced`(file: String) throws {
        let trust = try TestTrust()
        try FileManager.default.removeItem(atPath: trust.path + "/trust/" + file)
        #expect(throws: TrustError(.missing, "")) {
            try TrustOffice(folder: try TrustFolder.create(at: trust.path, now: trust.now))
        }
        #expect(!TrustFile.exists(trust.path + "/trust/" + file))
    }

    @Test(arguments: [
        "root.pem", "provider-authority.pem", "device-authority.pem", "server.pem", "token.keys", "provider-keys.json",
        "ledger.jsonl",
    ])
    func `a damaged file is refused and left as it is`(file: String) throws {
        let trust = try TestTrust()
        let path = trust.path + "/trust/" + file
        for content in ["garbage\n", "\u{0}\n", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"] {
            try TrustFile.write(Array(content.utf8), to: path, .secret)
            #expect(throws: TrustError(.damaged, "")) {
                try TrustOffice(folder: try TrustFolder.create(at: trust.path, now: trust.now))
            }
            #expect(try TrustFile.read(path, .secret) == Array(content.utf8))
        }
    }

    @Test func `a ledger that lost its content is refused and left as it is`() throws {
        let trust = try TestTrust()
        let path = trust.path + "/trust/ledger.jsonl"
        try TrustFile.write([], to: path, .secret)
        #expect(throws: TrustError(.damaged, "")) {
            try TrustOffice(folder: try TrustFolder.create(at: trust.path, now: trust.now))
        }
        #expect(try TrustFile.read(path, .secret).isEmpty)
    }

    @Test(arguments: ["", "no certificate"])
    func `an authority that is none is refused and left as it is`(content: String) throws {
        let trust = try TestTrust()
        try TrustFile.write(Array(content.utf8), to: trust.path + "/ca.pem", .open)
        #expect(throws: TrustError(.damaged, "")) { try TrustFolder.create(at: trust.path, now: trust.now) }
        #expect(try TrustFile.read(trust.path + "/ca.pem", .open) == Array(content.utf8))
    }

    @Test(arguments: [
        "root.pem", "provider-authority.pem", "device-authority.pem", "server.pem", "token.keys", "provider-keys.json",
        "ledger.jsonl",
    ])
    func `a secret that others can read stops the start with a message that says how to mend it`(file: String) throws {
        let trust = try TestTrust()
        let path = trust.path + "/trust/" + file
        for mode in [0o640, 0o604, 0o666, 0o610] as [mode_t] {
            chmod(path, mode)
            let error = #expect(throws: TrustError.self) {
                try TrustOffice(folder: try TrustFolder.create(at: trust.path, now: trust.now))
            }
            #expect(error?.code == .exposed)
            #expect(error?.message.contains("chmod 600 \(path)") == true)
        }
        chmod(path, 0o400)
        _ = try TrustOffice(folder: try TrustFolder.create(at: trust.path, now: trust.now))
    }

    @Test func `a folder that others can enter stops the start`() throws {
        let trust = try TestTrust()
        chmod(trust.path + "/trust", 0o750)
        let error = #expect(throws: TrustError.self) { try TrustFolder.create(at: trust.path, now: trust.now) }
        #expect(error?.code == .exposed)
        #expect(error?.message.contains("chmod 700 \(trust.path)/trust") == true)
        #expect(throws: TrustError(.exposed, "")) { try TrustFolder.load(at: trust.path) }
        chmod(trust.path + "/trust", 0o700)
    }

    @Test func `a list that others can write to is refused`() throws {
        let trust = try TestTrust()
        chmod(trust.path + "/trust/device.crl", 0o666)
        #expect(throws: TrustError(.exposed, "")) { try trust.office() }
    }

    @Test(.enabled(if: geteuid() == 0, "only the superuser can give a file away"))
    func `a file of another owner stops the start`() throws {
        let trust = try TestTrust()
        chown(trust.path + "/trust/token.keys", 12_345, 12_345)
        #expect(throws: TrustError(.foreignOwner, "")) { try trust.office() }
    }

    @Test func `a link is not followed`() throws {
        let trust = try TestTrust()
        let path = trust.path + "/trust/token.keys"
        try FileManager.default.moveItem(atPath: path, toPath: path + ".real")
        try FileManager.default.createSymbolicLink(atPath: path, withDestinationPath: path + ".real")
        #expect(throws: TrustError(.unreadable, "")) { try trust.folder.tokenKeys() }
        #expect(throws: TrustError(.unwritable, "")) {
            try FileManager.default.removeItem(atPath: trust.path + "/trust/ledger.jsonl")
            try FileManager.default.createSymbolicLink(
                atPath: trust.path + "/trust/lock.link",
                withDestinationPath: trust.path
            )
            try FileManager.default.removeItem(atPath: trust.path + "/trust/lock")
            try FileManager.default.createSymbolicLink(
                atPath: trust.path + "/trust/lock",
                withDestinationPath: trust.path + "/elsewhere"
            )
            _ = try TrustFolder.create(at: trust.path, now: trust.now)
        }
    }

    @Test func `where there is no service, nothing is made and the message says what to do`() {
        let path = NSTemporaryDirectory() + "/herald-test-none"
        let error = #expect(throws: TrustError.self) { try TrustFolder.load(at: path) }
        #expect(error?.code == .folderMissing)
        #expect(error?.message.contains("herald init") == true)
        #expect(!FileManager.default.fileExists(atPath: path))
    }

    @Test func `token keys are rotated in the folder and taken over by a running service`() throws {
        let trust = try TestTrust()
        let office = try trust.office()
        let contents = TokenContents(slot: Slot(device: DeviceNumber(1), app: AppNumber(1)), generation: 0)
        let old = office.seal.seal(contents)
        try trust.folder.updateTokenKeys { try $0.rotate(now: trust.now) }
        #expect(office.reload().tokenKeys)
        #expect(office.seal.seal(contents) != old)
        #expect(office.seal.open(old) == contents)
        #expect(office.reload().isUnchanged)
    }

    @Test func `a running service learns of a new server certificate`() throws {
        let trust = try TestTrust()
        let office = try trust.office()
        _ = try TrustFolder.create(at: trust.path, hostnames: ["new.example.com"], now: trust.now)
        #expect(office.reload().serverCertificate)
        #expect(office.reload().isUnchanged)
        try TrustFile.write(Array("garbage".utf8), to: trust.path + "/trust/server.pem", .secret)
        let reloaded = office.reload()
        #expect(!reloaded.serverCertificate)
        #expect(reloaded.failures == [TrustError(.damaged, "")])
    }
}
