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

    private func caller(_ session: SessionTable.Session) -> ConsoleCaller {
        ConsoleCaller(member: session.member, ground: .session(session.id), proof: .session)
    }

    private func tokenCaller(_ token: ConsoleToken) -> ConsoleCaller {
        ConsoleCaller(member: token.member, ground: .token(token.id), proof: .token)
    }

    private func link(_ access: ConsoleAccess, by caller: ConsoleCaller? = nil, name: String = "Ada") throws -> String {
        let operators = ConsoleCaller(name: "uid 0", role: .admin, proof: .socket)
        return try access.makeCode(name: name, role: .viewer, by: caller ?? operators).code
    }

    private func session(_ member: ConsoleMember, id: String, idle: Duration = .zero) -> SessionTable.Session {
        let now = clock.now()
        return SessionTable.Session(
            id: id,
            member: member,
            page: SecretDigest(""),
            address: "",
            opened: now,
            ends: now + SessionTable.longestLife,
            used: now - idle
        )
    }

    @Test func `a code works once`() throws {
        let access = access()
        let code = try link(access)
        #expect(try signIn(access, code: code) == ada)
        #expect(throws: AdminError.self) { try signIn(access, code: code) }
    }

    @Test func `a code works for a minute`() throws {
        let access = access()
        let (early, late) = (try link(access), try link(access))
        clock.advance(by: .seconds(59))
        #expect(try signIn(access, code: early) == ada)
        clock.advance(by: .seconds(1))
        #expect(throws: AdminError.self) { try signIn(access, code: late) }
    }

    @Test func `a session ends when it is idle for 12 hours, and after 7 days at the latest`() {
        let busy = session(ada, id: "busy")
        clock.advance(by: .seconds(12 * 3600 - 1))
        #expect(!busy.hasEnded(at: clock.now()))
        clock.advance(by: .seconds(1))
        #expect(busy.hasEnded(at: clock.now()))
        var used = busy
        clock.advance(by: .seconds(6 * 86_400 + 12 * 3600 - 1))
        used.used = clock.now()
        #expect(!used.hasEnded(at: clock.now()))
        clock.advance(by: .seconds(1))
        #expect(used.hasEnded(at: clock.now()))
    }

    @Test func `a stream that is only open does not keep a session`() throws {
        let access = access()
        let watcher = caller(try access.open(SessionRequest(code: link(access), token: nil), from: "").session)
        clock.advance(by: .seconds(12 * 3600 - 1))
        #expect(access.isStillIn(watcher))
        clock.advance(by: .seconds(1))
        #expect(!access.isStillIn(watcher))
    }

    @Test func `a member has sixteen sessions, and one more ends their own that was idle longest`() {
        var table = SessionTable()
        let eve = ConsoleMember(name: "Eve", role: .admin)
        _ = table.open(SecretDigest("eve"), session(eve, id: "eve", idle: .seconds(3600)))
        for number in 0..<300 {
            _ = table.open(SecretDigest("\(number)"), session(ada, id: "\(number)", idle: .seconds(-number)))
        }
        #expect(table.session("eve") != nil)
        #expect(table.all.count(where: { $0.member == ada }) == SessionTable.maximumOfMember)
        #expect(table.session("299") != nil && table.session("283") == nil)
    }

    @Test func `in a full table nobody loses a session to a lesser role`() {
        var table = SessionTable()
        let members = (0..<40).map { ConsoleMember(name: "viewer \($0)", role: .viewer, ground: .token("\($0)")) }
        let admins = (0..<16).map { _ in ConsoleMember(name: "Eve", role: .admin) }
        for (number, eve) in admins.enumerated() {
            _ = table.open(SecretDigest("eve \(number)"), session(eve, id: "eve", idle: .seconds(3600)))
        }
        for (number, member) in (0..<16).flatMap({ _ in members }).enumerated() {
            _ = table.open(SecretDigest("\(number)"), session(member, id: "\(number)"))
        }
        #expect(table.all.count == SessionTable.maximum)
        #expect(table.all.count(where: { $0.member.role == .admin }) == 16)
        let grace = session(ConsoleMember(name: "Grace", role: .admin), id: "grace")
        let isOpen = table.open(SecretDigest("grace"), grace)
        #expect(isOpen)
        #expect(table.all.count(where: { $0.member.role == .admin }) == 17)
    }

    @Test func `where everybody has one session, a full table refuses the next`() {
        var table = SessionTable()
        for number in 0..<SessionTable.maximum {
            let member = ConsoleMember(name: "\(number)", role: .viewer)
            _ = table.open(SecretDigest("\(number)"), session(member, id: "\(number)"))
        }
        let isOpen = table.open(SecretDigest("late"), session(ada, id: "late"))
        #expect(!isOpen)
        #expect(table.all.count == SessionTable.maximum)
    }

    @Test func `a link ends with the session that made it, and so does what was opened with it`() throws {
        let access = access()
        let eve = try access.open(SessionRequest(code: link(access), token: nil), from: "").session
        let (used, open) = (try link(access, by: caller(eve)), try link(access, by: caller(eve)))
        let ada = try access.open(SessionRequest(code: used, token: nil), from: "").session
        let late = try link(access, by: caller(ada))
        #expect(access.isStillIn(caller(ada)))
        #expect(access.closeSession(eve.id))
        #expect(throws: AdminError.self) { try signIn(access, code: open) }
        #expect(throws: AdminError.self) { try signIn(access, code: late) }
        #expect(!access.isStillIn(caller(ada)) && access.sessions.isEmpty)
        // Made by a request that began before the session ended.
        let after = try link(access, by: caller(eve))
        #expect(throws: AdminError.self) { try signIn(access, code: after) }
    }

    @Test func `a link ends when the session that made it was idle too long`() throws {
        let access = access()
        let eve = try access.open(SessionRequest(code: link(access), token: nil), from: "").session
        clock.advance(by: .seconds(12 * 3600 - 30))
        let code = try link(access, by: caller(eve))
        clock.advance(by: .seconds(30))
        #expect(throws: AdminError.self) { try signIn(access, code: code) }
    }

    @Test func `the open links of one caller are limited, and refuse nobody else's`() async throws {
        let access = access()
        let (token, _) = try await access.makeToken(TokenRequest(name: "ci", role: .admin, days: 1))
        for _ in 0..<LoginCodes.maximum { _ = try link(access, by: tokenCaller(token)) }
        #expect { try link(access, by: tokenCaller(token)) } throws: { ($0 as? AdminError)?.code == .tooMany }
        #expect(try signIn(access, code: link(access)) == ada)
    }

    @Test func `a revoked token ends links, sessions and tokens that were made with it`() async throws {
        let access = access()
        let (token, secret) = try await access.makeToken(TokenRequest(name: "ci", role: .admin, days: 1))
        let mine = try access.open(SessionRequest(code: nil, token: secret), from: "").session
        let (open, used) = (try link(access, by: tokenCaller(token)), try link(access, by: caller(mine)))
        let deep = try access.open(SessionRequest(code: used, token: nil), from: "").session
        let (child, childSecret) = try await access.makeToken(
            TokenRequest(name: "child", role: .admin, days: nil),
            by: caller(deep)
        )
        #expect(child.expires == token.expires)
        _ = try await access.makeToken(TokenRequest(name: "other", role: .viewer, days: nil))
        #expect(try signIn(access, token: "admin").role == .admin)
        let revoked = try await access.revokeToken(token.id)
        #expect(revoked.map(\.name) == ["ci", "child"] && access.tokens.map(\.name) == ["other"])
        #expect(access.sessions.map(\.member.name) == ["admin.token"])
        for token in [secret, childSecret] { #expect(throws: AdminError.self) { try signIn(access, token: token) } }
        #expect(throws: AdminError.self) { try signIn(access, code: open) }
        await #expect(throws: AdminError.self) {
            try await access.makeToken(TokenRequest(name: "late", role: .viewer, days: nil), by: tokenCaller(child))
        }
    }

    @Test func `a token that a token makes lasts no longer than that`() async throws {
        let access = access()
        let (token, _) = try await access.makeToken(TokenRequest(name: "ci", role: .admin, days: 10))
        await #expect(throws: AdminError.self) {
            try await access.makeToken(TokenRequest(name: "x", role: .viewer, days: 11), by: tokenCaller(token))
        }
        let made = try await access.makeToken(TokenRequest(name: "x", role: .viewer, days: 9), by: tokenCaller(token))
        #expect(made.token.expires < token.expires && made.token.maker == token.id)
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

    private func code(_ access: ConsoleAccess, _ token: String, from address: String) -> AdminError.Code? {
        do {
            _ = try access.open(SessionRequest(code: nil, token: token), from: address)
            return nil
        } catch {
            return (error as? AdminError)?.code
        }
    }

    @Test(arguments: [("192.0.2.1", "192.0.2.200", "192.0.3.1"), ("2001:db8::1", "2001:db8::ff:1", "2001:db8:0:1::1")])
    func `after ten wrong tokens a network waits, another does not, and right ones pass`(
        here: String,
        near: String,
        far: String
    ) throws {
        let access = access()
        for number in 1...10 { #expect(code(access, "wrong", from: number % 2 == 0 ? here : near) == .unauthorized) }
        #expect(code(access, "wrong", from: here) == .tooMany && code(access, "wrong", from: near) == .tooMany)
        #expect(code(access, "wrong", from: far) == .unauthorized)
        #expect(code(access, "admin", from: here) == nil)
        clock.advance(by: .seconds(6))
        #expect(code(access, "wrong", from: here) == .unauthorized)
    }

    @Test func `a full table of networks refuses new ones, and forgets none`() throws {
        let access = access()
        for _ in 1...10 { #expect(code(access, "wrong", from: "192.0.2.1") == .unauthorized) }
        for number in 1..<4096 {
            #expect(code(access, "wrong", from: "10.\(number / 256).\(number % 256).1") == .unauthorized)
        }
        for number in 0..<5000 {
            #expect(code(access, "wrong", from: "11.\(number / 256).\(number % 256).1") == .tooMany)
        }
        #expect(code(access, "wrong", from: "192.0.2.1") == .tooMany)
        #expect(code(access, "admin", from: "11.0.0.1") == nil)
        clock.advance(by: .seconds(6))
        #expect(code(access, "wrong", from: "11.0.0.1") == .unauthorized)
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
