import Foundation
import HeraldIdentity
import HeraldModel
import HeraldTestSupport
import HeraldTrust
import Testing

struct TrustServiceTests {
    private let trust: TestTrust
    private let service: TrustService

    init() async throws {
        trust = try await TestTrust()
        service = try await trust.service()
    }

    @Test func `a revoked key takes effect although the ledger cannot be read`() async throws {
        let key = try await trust.providerKey()
        _ = await service.reload()
        try await trust.folder.providers.revoke(key.id, now: trust.now)
        trust.store.fail(with: TrustError(.unreadable, "the ledger cannot be read"))
        let reloaded = await service.reload()
        #expect(reloaded.credentials && reloaded.failures.new == [TrustError(.unreadable, "")])
        #expect(service.providerTokens.credentials.key(key.id)?.revoked != nil)
        let again = await service.reload().failures
        #expect(again.new == [] && again.all == [TrustError(.unreadable, "")])
        let unread = service.reload(nil).failures
        #expect(unread.new == [] && unread.all == [TrustError(.unreadable, "")], "the last attempt has failed")
        trust.store.fail(with: nil)
        #expect(await service.reload().failures.all == [])
    }

    @Test func `topics of a new certificate are claimed although the key file cannot be read`() async throws {
        let topic = try #require(Topic("com.example.chat"))
        #expect(service.providerTokens.credentials.mayPush(topic: topic, team: "TEAM000002"))
        _ = try await trust.provider("com.example.chat", team: "TEAM000001")
        chmod(trust.path + "/trust/provider-keys.json", 0o640)
        let reloaded = await service.reload()
        #expect(reloaded.credentials && reloaded.failures.all == [TrustError(.exposed, "")])
        #expect(!service.providerTokens.credentials.mayPush(topic: topic, team: "TEAM000002"))
    }

    @Test func `a topic is known while a credential names it or a team owns it`() async throws {
        let names = ["com.example.a", "com.example.a.voip", "com.example.b", "com.example.c", "com.example.d"]
        let topics = try names.map { try #require(Topic($0)) }
        func known() async -> [String] {
            _ = await service.reload()
            return topics.filter(service.isKnown).map(\.name)
        }
        #expect(await known() == [])
        // Without a team, a certificate names a topic and gives it no owner.
        let certificate = try await trust.provider("com.example.a").credential
        _ = try await trust.providerKey()
        #expect(await known() == ["com.example.a", "com.example.a.voip"])
        let key = try await trust.providerKey("com.example.b.voip")
        try await trust.store.claim(
            [TopicClaim(topics[3], team: "TEAM000001", origin: .operator, since: trust.now)],
            takesOver: false
        )
        #expect(await known() == ["com.example.a", "com.example.a.voip", "com.example.b", "com.example.c"])
        try await trust.folder.providers.revoke(certificate.id, now: trust.now)
        #expect(await known() == ["com.example.b", "com.example.c"])
        // A key that names a topic is enough, also after its team gave the topic up.
        #expect(try await trust.store.release([topics[2]]) == nil)
        #expect(await known() == ["com.example.b", "com.example.c"])
        try await trust.folder.providers.revoke(key.id, now: trust.now)
        #expect(await known() == ["com.example.c"])
    }

    @Test(arguments: ["provider-keys.json", "token.keys", "server.pem"])
    func `a file that cannot be read now is read once it can, without being written`(file: String) async throws {
        let path = trust.path + "/trust/" + file
        let key = try await trust.providerKey()
        try await trust.folder.updateTokenKeys { try $0.rotate(now: trust.now) }
        _ = try await trust.restart(hostnames: ["new.example.com"])
        chmod(path, 0o666)
        #expect(await service.reload().failures.new == [TrustError(.exposed, "")])
        #expect(await service.reload().failures.new == [])
        chmod(path, 0o600)
        let reloaded = await service.reload()
        #expect(reloaded.failures.all == [] && !reloaded.isUnchanged)
        #expect(service.providerTokens.credentials.key(key.id) != nil)
    }

    @Test func `a folder that is gone is one failure, and is read once it is back`() async throws {
        let (folder, elsewhere) = (trust.path + "/trust", trust.path + "/elsewhere")
        try FileManager.default.moveItem(atPath: folder, toPath: elsewhere)
        #expect(await service.reload().failures.new == [TrustError(.folderMissing, "")])
        let again = await service.reload().failures
        #expect(again.new == [] && again.all == [TrustError(.folderMissing, "")])
        try FileManager.default.moveItem(atPath: elsewhere, toPath: folder)
        #expect(await service.reload().failures.all == [])
    }

    @Test func `a damaged file is not read again, and its failure stays`() async throws {
        let path = trust.path + "/trust/token.keys"
        let whole = try TrustFile.read(path, .secret)
        try TrustFile.write(Array("garbage".utf8), to: path, .secret)
        #expect(await service.reload().failures.new == [TrustError(.damaged, "")])
        let again = await service.reload().failures
        #expect(again.new == [] && again.all == [TrustError(.damaged, "")])
        try TrustFile.write(whole, to: path, .secret)
        #expect(await service.reload().failures.all == [])
    }

    @Test func `the authorities for new devices are kept, and follow their file, each once`() async throws {
        let former = service.authorities
        let root = try TrustFile.read(trust.path + "/ca.pem", .open)
        let other = trust.folder.providerAuthority
        let added = Array(try PEMBundle(certificates: [other.certificate]).pem().utf8)
        try TrustFile.write(root + added + root, to: trust.path + "/ca.pem", .open)
        #expect(service.authorities == former, "no request reads the file")
        _ = await service.reload()
        #expect(service.authorities == former + [other.der])
    }
}
