import HTTPTypes
import HeraldModel
import HeraldWeb
import Hummingbird

/// Routes of links, sessions and tokens.
struct AccessRoutes: Sendable {
    let access: ConsoleAccess
    let configuration: ConsoleConfiguration

    func add(to group: RouterGroup<ConsoleContext>) {
        var routes = WebRoutes(group)
        routes.post("links", LinkRequest.self) { wanted, _, context in try link(wanted, context) }
        routes.post("session", SessionRequest.self) { proof, request, context in try open(proof, request, context) }
        routes.get("session") { _, context in
            guard let caller = context.caller else { throw ConsoleGate.isUnknown }
            return try WebReply.json(SessionAnswer(caller.member, proof: caller.proof, of: configuration))
        }
        routes.delete("session") { request, context in
            if case .session(let id) = context.caller?.ground { _ = access.closeSession(id) }
            return setCookie("", Response(status: .noContent), request)
        }
        routes.get("sessions") { _, _ in
            try WebReply.json(AccessList(access.sessions.map { SessionEntry($0) }))
        }
        routes.delete("sessions/:id") { _, context in
            let id = try context.parameters.require("id")
            guard access.closeSession(id) else {
                throw AdminError(.notFound, "there is no session \(id): it may have ended")
            }
            return Response(status: .noContent)
        }
        routes.get("tokens") { _, _ in try WebReply.json(AccessList(access.tokens.map { TokenEntry($0) })) }
        routes.post("tokens", TokenRequest.self) { wanted, _, context in
            context.note.target = "\(wanted.role.rawValue) \(wanted.name)"
            let (token, secret) = try await access.makeToken(wanted, by: context.caller)
            return try WebReply.json(TokenEntry(token, secret: secret), status: .created)
        }
        routes.delete("tokens/:id") { _, context in
            let revoked = try await access.revokeToken(try context.parameters.require("id"))
            context.note.target = revoked.map { "\($0.id) \($0.name)" }.joined(separator: ", ")
            return Response(status: .noContent)
        }
        routes.refuseOtherMethods()
    }

    private func link(_ wanted: LinkRequest, _ context: ConsoleContext) throws -> Response {
        guard let caller = context.caller else { throw ConsoleGate.isUnknown }
        let name = wanted.name ?? caller.name
        guard ConsoleTokens.isName(name) else {
            throw AdminError(.badRequest, "name must have 1 to 64 bytes, without control characters")
        }
        context.note.target = "\(wanted.role.rawValue) \(name)"
        let (code, expires) = try access.makeCode(name: name, role: wanted.role, by: caller)
        return try WebReply.json(
            LinkAnswer(code: code, name: name, role: wanted.role, expires: expires.rfc3339),
            status: .created
        )
    }

    private func open(_ proof: SessionRequest, _ request: Request, _ context: ConsoleContext) throws -> Response {
        guard (proof.code == nil) != (proof.token == nil) else {
            throw AdminError(.badRequest, "give either code or token")
        }
        let new = try access.open(proof, from: context.address)
        let member = new.session.member
        context.note.target = "\(member.role.rawValue) \(member.name)"
        let answer = SessionAnswer(member, proof: .session, of: configuration, pageSecret: new.page)
        return setCookie(new.cookie, try WebReply.json(answer, status: .created), request)
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
