import Foundation
import HeraldModel
import HeraldTestSupport
import Synchronization
import Testing

@testable import HeraldConsole

/// Codes, sessions and tokens, without a listener.
struct AccessTests {
    private let clock = ManualClock()
    private let ada = ConsoleMember(name: "Ada", role: .viewer)

    private func access(save: @escaping ConsoleAccess.Save = { _ in }) -> ConsoleAccess {
        ConsoleAccess(adminToken: "admin", clock: clock, save: save)
    }

    private func signIn(_ access: ConsoleAccess, code: String? = nil, token: String? = nil) throws -> ConsoleMember {
        try access.open(SessionRequest(code: code, token: token), from: "192.0.2.1").session.member
    }

    @Test func `a code works once`() throws {
        let access = access()
        let (code, _) = access.makeCode(for: ada)
        #expect(try signIn(access, code: code) == ada)
        #expect(throws: AdminError.self) { try signIn(access, code: code) }
    }

    @Test func `a code works for a minute`() throws {
        let access = access()
        let (early, late) = (access.makeCode(for: ada).code, access.makeCode(for: ada).code)
        clock.advance(by: .seconds(59))
        #expect(try signIn(access, code: early) == ada)
        clock.advance(by: .seconds(1))
        #expect(throws: AdminError.self) { try signIn(access, code: late) }
    }

    @Test func `a session ends when it is idle for 12 hours, and after 7 days at the latest`() {
        var table = SessionTable()
        let (idle, busy) = (SecretDigest("idle"), SecretDigest("busy"))
        for digest in [idle, busy] {
            _ = table.open(digest, id: digest.hexadecimal, as: ada, address: "", at: clock.now())
        }
        for _ in 1...14 {
            clock.advance(by: .seconds(12 * 3600 - 1))
            #expect(table.session(busy, at: clock.now()) != nil)
        }
        #expect(table.session(idle, at: clock.now()) == nil)
        clock.advance(by: .seconds(14))
        #expect(table.session(busy, at: clock.now()) == nil)
    }

    @Test func `a stream that is only open does not keep a session`() {
        var table = SessionTable()
        let digest = SecretDigest("watching")
        _ = table.open(digest, id: "1", as: ada, address: "", at: clock.now())
        clock.advance(by: .seconds(12 * 3600 - 1))
        #expect(table.session(digest, at: clock.now(), isUse: false) != nil)
        clock.advance(by: .seconds(1))
        #expect(table.session(digest, at: clock.now(), isUse: false) == nil)
    }

    @Test func `one session too many ends the one that was idle longest`() {
        var table = SessionTable()
        let digests = (0...SessionTable.maximum).map { SecretDigest("\($0)") }
        for digest in digests.dropLast() {
            _ = table.open(digest, id: digest.hexadecimal, as: ada, address: "", at: clock.now())
            clock.advance(by: .seconds(1))
        }
        #expect(table.session(digests[0], at: clock.now()) != nil)
        _ = table.open(digests[SessionTable.maximum], id: "new", as: ada, address: "", at: clock.now())
        #expect(table.session(digests[0], at: clock.now()) != nil)
        #expect(table.session(digests[1], at: clock.now()) == nil)
        #expect(table.all(at: clock.now()).count == SessionTable.maximum)
    }

    @Test func `a revoked token ends the sessions that stand on it, also those of its links`() async throws {
        let access = access()
        let (token, secret) = try await access.makeToken(TokenRequest(name: "ci", role: .admin, days: 1))
        #expect(try signIn(access, token: secret).name == "ci")
        let link = ConsoleMember(name: "Eve", role: .admin, token: token.id, ends: nil)
        let (code, _) = access.makeCode(for: link)
        #expect(try signIn(access, code: code) == link)
        #expect(try signIn(access, token: "admin").role == .admin)
        _ = try await access.revokeToken(token.id)
        #expect(access.sessions.map(\.member.name) == ["admin.token"])
        #expect(throws: AdminError.self) { try signIn(access, token: secret) }
    }

    @Test func `a token ends after its days, and so do its sessions`() async throws {
        let access = access()
        let (_, secret) = try await access.makeToken(TokenRequest(name: "ci", role: .viewer, days: 1))
        clock.advance(by: .seconds(86_400 - 10))
        #expect(try signIn(access, token: secret).name == "ci")
        clock.advance(by: .seconds(10))
        #expect(access.sessions.isEmpty && access.tokens.isEmpty)
        #expect(throws: AdminError.self) { try signIn(access, token: secret) }
    }

    @Test func `a token that cannot be saved is not there`() async throws {
        let access = access { _ in throw AdminError(.failed, "the disk is full") }
        await #expect(throws: AdminError.self) {
            try await access.makeToken(TokenRequest(name: "ci", role: .viewer, days: nil))
        }
        #expect(access.tokens.isEmpty)
    }

    @Test func `the file has no token, only its hash`() async throws {
        let saved = Saved()
        let access = access { saved.bytes = try $0.json() }
        let (token, secret) = try await access.makeToken(TokenRequest(name: "ci", role: .sender, days: 3))
        #expect(!String(decoding: saved.bytes, as: UTF8.self).contains(secret))
        let again = ConsoleAccess(adminToken: "", tokens: try #require(ConsoleTokens(json: saved.bytes)), clock: clock)
        #expect(again.tokens == [token])
        #expect(try signIn(again, token: secret).role == .sender)
    }

    @Test func `a name is taken once, and names are plain`() async throws {
        let access = access()
        _ = try await access.makeToken(TokenRequest(name: "ci", role: .viewer, days: nil))
        for name in ["ci", "", " ci", "a\nb", "\u{202E}ic", String(repeating: "x", count: 65)] {
            await #expect(throws: AdminError.self, "\(name)") {
                try await access.makeToken(TokenRequest(name: name, role: .viewer, days: nil))
            }
        }
    }

    @Test(arguments: ["", "{}", "[]", #"{"version":2,"tokens":[]}"#, #"{"version":1,"tokens":[{"id":"a"}]}"#])
    func `a damaged file is none`(text: String) {
        #expect(ConsoleTokens(json: Array(text.utf8)) == nil)
    }

    @Test func `after ten wrong tokens an address waits, and another does not`() throws {
        let access = access()
        for _ in 1...10 { #expect(throws: AdminError.self) { try signIn(access, token: "wrong") } }
        #expect { try signIn(access, token: "admin") } throws: { ($0 as? AdminError)?.code == .tooMany }
        let other = try access.open(SessionRequest(code: nil, token: "admin"), from: "192.0.2.2")
        #expect(other.session.member.role == .admin)
        clock.advance(by: .seconds(60))
        #expect(try signIn(access, token: "admin").role == .admin)
    }

    @Test func `an empty admin token lets nobody in`() {
        let access = ConsoleAccess(adminToken: "", clock: clock)
        #expect(throws: AdminError.self) { try signIn(access, token: "") }
    }

    @Test func `secrets are long and differ`() {
        let secrets = (0..<100).map { _ in ConsoleSecret.make(bytes: 16) }
        #expect(Set(secrets).count == 100 && secrets.allSatisfy { $0.count == 22 })
        #expect(ConsoleSecret.make(bytes: 32).count == 43)
    }
}

/// The last bytes that a test saved.
private final class Saved: Sendable {
    private let state = Mutex<[UInt8]>([])

    var bytes: [UInt8] {
        get { state.withLock { $0 } }
        set { state.withLock { $0 = newValue } }
    }
}
