import Foundation
import HTTPTypes
import Testing

@testable import HeraldConsole

struct RoleTableTests {
    private let harness = ConsoleHarness()

    /// The least role of each described request below `/v1`: `x-role`, `none` for anybody.
    private func described() async throws -> [String: String] {
        let text = try await harness.withPort { try await harness.ask("GET", $0 + "/openapi.yaml") }.body
        var roles: [String: String] = [:]
        var (path, method) = ("", "")
        for line in text.split(separator: "\n") {
            let indent = line.prefix { $0 == " " }.count
            let word = line.dropFirst(indent)
            switch indent {
            case 2: path = word.hasPrefix("/v1/") ? String(word.dropLast()) : ""
            case 4 where !path.isEmpty && ["get:", "post:", "put:", "delete:"].contains(word):
                method = word.dropLast().uppercased()
                roles["\(method) \(path)"] = "missing: x-role"
            case 6 where !path.isEmpty && word.hasPrefix("x-role: "):
                roles["\(method) \(path)"] = String(word.dropFirst(8))
            default: break
            }
        }
        return roles
    }

    @Test func `the description has the roles of the table`() async throws {
        let described = try await described()
        #expect(described.count >= 15)
        for (request, role) in described {
            let words = request.split(separator: " ").map(String.init)
            let method = try #require(HTTPRequest.Method(words[0]))
            let expected = RoleTable.rule(method, words[1]).role?.rawValue ?? "none"
            #expect(role == expected, "x-role of \(request) in openapi.yaml, and its row in RoleTable")
        }
        // Those of the control socket are for Herald's own commands.
        let rows = RoleTable.rules.filter { !$0.path.hasPrefix("/v1/control/") }.map { "\($0.method) \($0.path)" }
        #expect(Set(rows).subtracting(described.keys) == [])
    }

    @Test func `what is not in the table needs an admin, and counts as a change`() {
        let rule = RoleTable.rule(.post, "/v1/anything/new")
        #expect(rule.role == .admin && rule.isChange)
        #expect(RoleTable.rule(.get, "/v1/anything").role == .admin)
    }

    @Test func `drills have the role that the operator chose, and nothing else has it`() {
        for rule in RoleTable.rules {
            let role = RoleTable.rule(rule.method, rule.path, drills: .sender).role
            #expect(role == (rule.isDrill ? .sender : rule.role), "\(rule.path)")
        }
        #expect(RoleTable.rule(.post, "/v1/clock/advance", drills: .sender).role == .admin)
        #expect(RoleTable.rule(.get, "/v1/drills", drills: .sender).role == .viewer)
    }

    @Test func `each role has the rights of those before it`() {
        #expect(ConsoleRole.allCases.sorted() == [.viewer, .sender, .admin])
    }

    @Test func `a request is in the table once`() {
        let requests = RoleTable.rules.map { "\($0.method) \($0.path)" }
        #expect(Set(requests).count == requests.count)
    }
}
