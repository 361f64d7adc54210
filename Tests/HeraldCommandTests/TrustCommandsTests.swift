import ArgumentParser
import Foundation
import HeraldIdentity
import HeraldModel
import HeraldStores
import HeraldTestSupport
import HeraldTrust
import Testing

@testable import HeraldCommand
@testable import HeraldService

@Suite struct TrustCommandsTests {
    private let temporary: TemporaryFolder
    private var data: String { temporary.path + "/data" }

    init() throws {
        temporary = try TemporaryFolder()
    }

    private func run(_ command: any AsyncParsableCommand.Type, _ arguments: String...) async throws {
        var command = try command.parse(arguments + ["--data", data])
        try await command.run()
    }

    private func trust() throws -> TrustFolder {
        try TrustFolder.load(at: data, store: TrustDatabase.open)
    }

    private func isUsageError(_ command: any AsyncParsableCommand.Type, _ arguments: String...) -> Bool {
        do {
            _ = try command.parse(arguments)
            return false
        } catch {
            return command.exitCode(for: error) == .validationFailure
        }
    }

    @Test func `init makes a service's folder, and adds names to it later`() async throws {
        try await run(Init.self)
        #expect(FileManager.default.fileExists(atPath: data + "/ca.pem"))
        try await run(Init.self, "--hostname", "push.example.com", "--hostname", "192.0.2.7", "--json")
        let names = try trust().serverCertificate().names.map(\.description)
        #expect(Set(names).isSuperset(of: ["localhost", "push.example.com", "192.0.2.7"]))
    }

    @Test func `init does not answer to Apple's names where everybody can reach it`() async throws {
        let config = try temporary.write("host: 203.0.113.7\n", to: "herald.yaml")
        await #expect(throws: CommandError(.configuration, "")) {
            try await run(Init.self, "--as-apple", "--config", config)
        }
        #expect(!FileManager.default.fileExists(atPath: data))
        try await run(Init.self, "--as-apple")
        #expect(try trust().serverCertificate().namesApple)
    }

    @Test func `a provider's certificate is written for its owner alone`() async throws {
        try await run(Init.self)
        let out = temporary.path + "/chat.pem"
        try await run(
            ProviderCertificate.self,
            "--topic",
            "com.example.chat",
            "--topic",
            "com.example.chat.voip",
            "--team",
            "TEAM000001",
            "--environment",
            "sandbox",
            "--out",
            out
        )
        #expect(try temporary.mode(of: "chat.pem") == 0o600)
        let credential = try #require(try await trust().providers.all().first)
        #expect(credential.topics.map(\.name) == ["com.example.chat", "com.example.chat.voip"])
        #expect(credential.team == "TEAM000001")
        #expect(credential.environments == [.sandbox])
        let pem = try temporary.text(of: "chat.pem")
        #expect(pem.hasPrefix("-----BEGIN CERTIFICATE-----") && pem.hasSuffix("-----END PRIVATE KEY-----\n"))
    }

    @Test func `a provider's key is written under the name that clients expect, into a folder that is made`()
        async throws
    {
        try await run(Init.self)
        try await run(ProviderKeyCommand.self, "--team", "TEAM000001", "--out", temporary.path + "/keys", "--json")
        let key = try #require(try trust().providerKeys().first)
        #expect(try temporary.mode(of: "keys/AuthKey_\(key.id).p8") == 0o600)
        #expect(key.topics.isEmpty)
        #expect(key.environments == [.production, .sandbox])
    }

    @Test func `a device is enrolled, listed and revoked`() async throws {
        try await run(Init.self)
        try await run(DeviceEnroll.self, "--out", temporary.path + "/d.pem", "--name", "Lamp")
        let device = try #require(try await trust().devices.all().first)
        #expect(device.name == "Lamp")
        try await run(DeviceList.self)
        try await run(DeviceList.self, "--json")
        try await run(DeviceRevoke.self, device.id.name)
        #expect(try await trust().devices.all().first?.revoked != nil)
        await #expect(throws: TrustError(.alreadyRevoked, "")) { try await run(DeviceRevoke.self, device.id.name) }
        await #expect(throws: TrustError(.unknownID, "")) { try await run(DeviceRevoke.self, "nobody") }
    }

    @Test func `a credential is listed and revoked by its identifier`() async throws {
        try await run(Init.self)
        try await run(ProviderCertificate.self, "--topic", "com.example.chat", "--out", temporary.path + "/p.pem")
        let id = try #require(try await trust().providers.all().first?.id)
        try await run(ProviderList.self)
        try await run(ProviderList.self, "--json")
        try await run(ProviderRevoke.self, id, "--json")
        #expect(try await trust().providers.all().first?.revoked != nil)
        await #expect(throws: TrustError(.alreadyRevoked, "")) { try await run(ProviderRevoke.self, id) }
    }

    @Test func `nothing is issued that could not be written`() async throws {
        try await run(Init.self)
        for out in [temporary.path + "/none/p.pem", temporary.path] {
            await #expect(throws: CommandError(.file, "")) {
                try await run(ProviderCertificate.self, "--topic", "com.example.chat", "--out", out)
            }
            await #expect(throws: CommandError(.file, "")) { try await run(DeviceEnroll.self, "--out", out) }
        }
        let file = try temporary.write("", to: "file")
        await #expect(throws: CommandError(.file, "")) {
            try await run(ProviderKeyCommand.self, "--team", "TEAM000001", "--out", file)
        }
        #expect(try await trust().providers.all().isEmpty)
        #expect(try await trust().devices.all().isEmpty)
    }

    @Test func `a request that is none is refused, and nothing is written`() async throws {
        try await run(Init.self)
        let request = try temporary.write("garbage", to: "my.csr")
        let out = temporary.path + "/d.pem"
        let error = await #expect(throws: CommandError.self) {
            try await run(DeviceEnroll.self, "--request", request, "--out", out)
        }
        #expect(error?.message.hasPrefix(request) == true)
        await #expect(throws: CommandError(.unusableFile, "")) {
            try await run(DeviceEnroll.self, "--request", request + ".none", "--out", out)
        }
        #expect(!FileManager.default.fileExists(atPath: out))
    }

    @Test func `without a service's folder the commands say what to do`() async throws {
        for command in [ProviderList.self, DeviceList.self] as [any AsyncParsableCommand.Type] {
            let error = await #expect(throws: CommandError.self) { try await run(command) }
            #expect(error?.message.contains("herald init") == true)
        }
    }

    @Test func `a secret that others can read stops every command`() async throws {
        try await run(Init.self)
        chmod(data + "/trust/provider-authority.pem", 0o644)
        let error = await #expect(throws: TrustError(.exposed, "")) { try await run(ProviderList.self) }
        #expect(error?.message.contains("chmod 600") == true)
    }

    @Test func `a token is told from a forged one`() async throws {
        try await run(Init.self)
        let contents = TokenContents(slot: Slot(device: DeviceNumber(3), app: AppNumber(4)), generation: 5)
        let ring = try trust().tokenKeys()
        let token = TokenSeal(keys: ring).seal(contents)
        let report = TokenReport(token, ring: ring)
        #expect(report.opens)
        #expect(report.key == 1)
        #expect(report.deviceNumber == 3)
        #expect(report.appNumber == 4)
        #expect(report.generation == 5)
        #expect(!report.token.contains(token.hex))
        try await run(TokenInspect.self, token.hex, "--json")
        let forged = TokenReport(try #require(DeviceToken(String(repeating: "0", count: 64))), ring: ring)
        #expect(!forged.opens)
        #expect(forged.verdict.hasPrefix("BadDeviceToken"))
    }

    @Test func `wrong usage is told apart`() {
        #expect(isUsageError(Init.self, "--hostname", "a b"))
        #expect(isUsageError(ProviderCertificate.self, "--out", "p.pem"))
        #expect(isUsageError(ProviderCertificate.self, "--topic", "*", "--out", "p.pem"))
        #expect(isUsageError(ProviderCertificate.self, "--topic", "com.example.chat"))
        #expect(isUsageError(ProviderCertificate.self, "--topic", "a", "--team", "short", "--out", "p.pem"))
        #expect(isUsageError(ProviderCertificate.self, "--topic", "a", "--environment", "test", "--out", "p.pem"))
        #expect(isUsageError(ProviderKeyCommand.self, "--out", "."))
        #expect(isUsageError(DeviceEnroll.self))
        #expect(isUsageError(DeviceRevoke.self))
        #expect(isUsageError(TokenInspect.self, "xyz"))
    }
}

@Suite struct ListenAddressTests {
    @Test(arguments: [
        "127.0.0.1", "127.1.2.3", "localhost", "::1", "10.0.0.1", "172.16.0.1", "172.31.255.255", "192.168.1.1",
        "169.254.1.1", "100.64.0.1", "100.127.255.255", "fe80::1", "fd00::1", "::ffff:10.0.0.1",
    ])
    func `private addresses are not public`(host: String) {
        #expect(!ListenScope.isPublic(host))
    }

    @Test(arguments: [
        "0.0.0.0", "::", "8.8.8.8", "172.32.0.1", "172.15.0.1", "192.169.0.1", "100.63.0.1", "100.128.0.1",
        "2001:db8::1", "::ffff:8.8.8.8",
        "push.example.com", "",
    ])
    func `all others are`(host: String) {
        #expect(ListenScope.isPublic(host))
    }
}

@Suite struct ListenScopeTests {
    private let container = ["127.0.0.1", "172.18.0.2", "::1", "fe80::42:acff:fe12:2"]

    @Test func `all addresses of a machine are public if one of them is`() {
        #expect(ListenScope.publicAddress(on: "0.0.0.0", machine: container) == nil)
        #expect(ListenScope.publicAddress(on: "::", machine: container) == nil)
        #expect(ListenScope.publicAddress(on: "0.0.0.0", machine: container + ["203.0.113.7"]) == "203.0.113.7")
        #expect(ListenScope.publicAddress(on: "::", machine: container + ["203.0.113.7"]) == "203.0.113.7")
        #expect(ListenScope.publicAddress(on: "::", machine: container + ["2001:db8::1"]) == "2001:db8::1")
    }

    @Test func `a listener of version 4 has no address of version 6`() {
        #expect(ListenScope.publicAddress(on: "0.0.0.0", machine: container + ["2001:db8::1"]) == nil)
    }

    @Test func `one address counts whatever else the machine has`() {
        #expect(ListenScope.publicAddress(on: "172.18.0.2", machine: ["203.0.113.7"]) == nil)
        #expect(ListenScope.publicAddress(on: "203.0.113.7", machine: []) == "203.0.113.7")
        #expect(ListenScope.publicAddress(on: "push.example.com", machine: []) == "push.example.com")
    }

    @Test func `all addresses of an unknown machine are public`() {
        #expect(ListenScope.publicAddress(on: "0.0.0.0", machine: nil) == "0.0.0.0")
        #expect(ListenScope.publicAddress(on: "::", machine: nil) == "::")
    }

    @Test func `the machine tells its own addresses`() throws {
        #expect(try #require(ListenScope.machineAddresses()).contains { $0 == "127.0.0.1" || $0 == "::1" })
    }
}

@Suite struct TextTableTests {
    @Test func `columns are as wide as their widest text, and lines end with their last`() {
        var table = TextTable(["ID", "NAME"])
        table.add(["long-one", ""])
        table.add(["a", "Küche"])
        #expect(table.lines == ["ID        NAME", "long-one", "a         Küche"])
    }
}
