import HTTPTypes
import HeraldModel
import HeraldWeb
import Hummingbird

/// Links, sessions, tokens and the audit.
struct AccessRoutes: Sendable {
    let access: ConsoleAccess
    let configuration: ConsoleConfiguration
    let audit: any ConsoleAudit

    func register(_ api: inout AdminWork) {
        api.on(AdminAPI.makeLink) { call in try link(call) }
        api.respond(to: AdminAPI.signIn) { call in try open(call) }
        api.on(AdminAPI.session) { call in
            guard let caller = call.caller else { throw ConsoleGate.isUnknown }
            return SessionAnswer(caller.member, proof: caller.proof, of: configuration)
        }
        api.respond(to: AdminAPI.signOut) { call in
            if case .session(let id) = call.caller?.ground { _ = access.closeSession(id) }
            return setCookie("", Response(status: .noContent), call.request)
        }
        api.on(AdminAPI.sessions) { _ in Page(items: access.sessions.map { SessionEntry($0) }, next: nil) }
        api.on(AdminAPI.endSession) { call in
            let id = try call.path(Ask.id)
            guard access.closeSession(id) else {
                throw AdminError(.notFound, "there is no session \(id): it may have ended")
            }
            return NoContent()
        }
        api.on(AdminAPI.tokens) { _ in Page(items: access.tokens.map { TokenEntry($0) }, next: nil) }
        api.on(AdminAPI.makeToken) { call in
            call.note.target = "\(call.body.role.rawValue) \(call.body.name)"
            let (token, secret) = try await access.makeToken(call.body, by: call.caller)
            return TokenEntry(token, secret: secret)
        }
        api.on(AdminAPI.revokeToken) { call in
            let revoked = try await access.revokeToken(try call.path(Ask.id))
            call.note.target = revoked.map { "\($0.id) \($0.name)" }.joined(separator: ", ")
            return NoContent()
        }
        api.on(AdminAPI.audit) { call in
            let limit = try call(AdminAPI.auditLimit) ?? 100
            let entries = try await audit.read(limit: limit, before: try call(AdminAPI.auditBefore))
            let next = entries.count == limit ? entries.last.flatMap { $0.id > 1 ? String($0.id) : nil } : nil
            return Page(items: entries, next: next)
        }
    }

    private func link(_ call: Call<LinkRequest>) throws -> LinkAnswer {
        let wanted = call.body
        guard let caller = call.caller else { throw ConsoleGate.isUnknown }
        let name = wanted.name ?? caller.name
        guard ConsoleTokens.isName(name) else {
            throw AdminError(.badRequest, "name must have 1 to 64 bytes, without control characters")
        }
        call.note.target = "\(wanted.role.rawValue) \(name)"
        let (code, expires) = try access.makeCode(name: name, role: wanted.role, by: caller)
        return LinkAnswer(code: code, name: name, role: wanted.role, expires: expires.rfc3339)
    }

    private func open(_ call: Call<SessionRequest>) throws -> Response {
        let proof = call.body
        guard (proof.code == nil) != (proof.token == nil) else {
            throw AdminError(.badRequest, "give either code or token")
        }
        let new = try access.open(proof, from: call.context.address)
        let member = new.session.member
        call.note.target = "\(member.role.rawValue) \(member.name)"
        let answer = SessionAnswer(member, proof: .session, of: configuration, pageSecret: new.page)
        return setCookie(new.cookie, try WebReply.json(answer, status: .created), call.request)
    }

    private func setCookie(_ secret: String, _ response: Response, _ request: Request) -> Response {
        var response = response
        response.headers[.setCookie] = SessionCookie.field(
            secret,
            for: request,
            isSecure: access.isOverTLS || SessionCookie.isBehindTLS(request)
        )
        return response
    }
}
