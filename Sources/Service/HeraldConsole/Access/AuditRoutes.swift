import HeraldWeb
import Hummingbird

/// Routes of the audit.
struct AuditRoutes: Sendable {
    let audit: any ConsoleAudit

    func add(to group: RouterGroup<ConsoleContext>) {
        var routes = WebRoutes(group)
        routes.get("audit", ["limit", "before"]) { request, _ in
            let limit = try number("limit", of: request, in: 1...1000) ?? 100
            let before = try number("before", of: request, in: 1...Int.max)
            let entries = try await audit.read(limit: limit, before: before)
            let next = entries.count == limit ? entries.last.flatMap { $0.id > 1 ? String($0.id) : nil } : nil
            return try WebReply.json(AccessList(entries, next: next))
        }
        routes.refuseOtherMethods()
    }

    private func number(_ name: String, of request: Request, in range: ClosedRange<Int>) throws -> Int? {
        guard let text = request.uri.queryParameters[name[...]] else { return nil }
        guard let number = Int(text), range.contains(number) else {
            let most = range.upperBound == Int.max ? "at least \(range.lowerBound)" : "from 1 to \(range.upperBound)"
            throw AdminError(.badRequest, "\(name) must be a number \(most)")
        }
        return number
    }
}
