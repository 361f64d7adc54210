import HTTPTypes
import HeraldModel
import HeraldWeb
import Hummingbird
import Synchronization

/// Lets callers in to the requests of their role, and writes changes to the audit.
struct ConsoleGate: RouterMiddleware {
    /// How a request came.
    enum Way: Sendable {
        case port(ConsoleAccess, ConsoleConfiguration)
        case socket
    }

    private let way: Way
    private let audit: any ConsoleAudit
    private let clock: any WallClock
    private let readers = PayloadReaders()

    private let rows: [String: OperationRow]
    private let site: SiteRule
    private let drills: ConsoleRole

    init(way: Way, rows: [OperationRow], audit: any ConsoleAudit, clock: any WallClock) {
        self.way = way
        self.rows = Dictionary(rows.map { ($0.name, $0) }) { $1 }
        var isOverTLS = false
        if case .port(let access, let configuration) = way {
            isOverTLS = access.isOverTLS
            drills = configuration.drillsRole
        } else {
            drills = .admin
        }
        site = SiteRule(protecting: "the console", isOverTLS: isOverTLS)
        self.audit = audit
        self.clock = clock
    }

    func handle(
        _ request: Request,
        context: ConsoleContext,
        next: (Request, ConsoleContext) async throws -> Response
    ) async throws -> Response {
        let rule = row(request.method, context.endpointPath ?? "")
        var (request, context) = (request, context)
        do {
            try await admit(&request, to: rule, &context)
            let response = try await next(request, context)
            let isFirstLook = rule.effect == .readsPayloads && context.caller.map({ readers.add($0.member) }) == true
            if rule.isChange || isFirstLook { record(rule, context, status: response.status.code) }
            return response
        } catch {
            if rule.isChange, let failure = Failure(error), failure.isTold || context.caller != nil {
                record(rule, context, status: failure.status, error: failure.words)
            }
            throw error
        }
    }

    private func row(_ method: HTTPRequest.Method, _ path: String) -> OperationRow {
        rows["\(method.rawValue) \(path)"] ?? .unknown(method, path)
    }

    /// Sets the caller, or refuses the request.
    private func admit(
        _ request: inout Request,
        to rule: OperationRow,
        _ context: inout ConsoleContext
    ) async throws {
        switch way {
        case .socket:
            context.caller = await .socket(context)
        case .port(let access, let configuration):
            if rule.method != .get { try site.refuseForeign(request) }
            let role = rule.role.role(drills: drills)
            context.caller = role == nil ? nil : try access.caller(of: request, from: context.address)
            try checkPage(request, rule, context.caller)
            if let role {
                guard let caller = context.caller else { throw Self.isUnknown }
                guard caller.role >= role else { throw Self.isBeyond(role, caller) }
                context.isStillIn = { access.isStillIn(caller) }
                request.body = RequestBody(
                    asyncSequence: AdmittedBody(base: request.body, isStillIn: context.isStillIn)
                )
            }
            let isReadOnly = configuration.mode == .readOnly
            guard !isReadOnly || rule.effect != .changes else { throw Self.isReadOnly }
        }
    }

    /// Refuses a change without a token that our page did not make.
    private func checkPage(_ request: Request, _ rule: OperationRow, _ caller: ConsoleCaller?) throws {
        guard rule.method != .get, rule.role == .none || caller?.proof == .session else { return }
        if rule.role != .none, site.comesFromOurPage(request) != true {
            throw AdminError(.forbidden, "with a cookie, send the field `origin` with the address of this console")
        }
        if rule.method != .delete { try site.requireJSON(request) }
    }

    private func record(_ rule: OperationRow, _ context: ConsoleContext, status: Int, error: String? = nil) {
        let parameters = context.parameters.map { String($0.value) }.joined(separator: " ")
        audit.write(
            AuditEntry(
                time: clock.now().rfc3339,
                who: context.caller?.name,
                role: context.caller?.role,
                from: context.address,
                proof: context.caller?.proof,
                action: "\(rule.method.rawValue) \(rule.path)",
                target: context.note.target ?? (parameters.isEmpty ? nil : String(parameters.prefix(256))),
                status: status,
                error: error
            )
        )
    }

    static let isUnknown = AdminError(
        .unauthorized,
        "sign in with the link that `herald console` prints, or send `authorization: Bearer …` with the token in "
            + "run/admin.token or one of `herald console token`"
    )

    private static let isReadOnly = AdminError(
        .forbidden,
        "this console is read-only (console-mode): make the change with a command on the service's machine"
    )

    private static func isBeyond(_ role: ConsoleRole, _ caller: ConsoleCaller) -> AdminError {
        AdminError(.forbidden, "this needs the role \(role.rawValue), and \(caller.name) is a \(caller.role.rawValue)")
    }

    /// A refusal for the audit.
    private struct Failure {
        let status: Int
        let words: String
        /// Whether the audit has it even if the caller is unknown: a wrong code or token of somebody who signs in.
        let isTold: Bool

        /// nil for a request that no route takes.
        init?(_ error: any Error) {
            switch error {
            case let error as AdminError: (status, words) = (error.code.httpStatus, error.message)
            case let error as WebRefusal: (status, words) = (error.status, error.message)
            case let error as HTTPError: (status, words) = (error.status.code, error.body ?? error.status.reasonPhrase)
            default: (status, words) = (500, "the request failed; the log has the reason")
            }
            guard status != 405 else { return nil }
            isTold = status == 401 && words != ConsoleGate.isUnknown.message
        }
    }
}

/// The callers that have read payloads.
private final class PayloadReaders: Sendable {
    /// One more, and all count as new.
    private static let maximum = 1024

    private let callers = Mutex<Set<ConsoleMember>>([])

    /// Whether this is the caller's first look.
    func add(_ caller: ConsoleMember) -> Bool {
        callers.withLock { callers in
            if callers.count >= Self.maximum { callers = [] }
            return callers.insert(caller).inserted
        }
    }
}
