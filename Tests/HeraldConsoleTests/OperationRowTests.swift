import Foundation
import HTTPTypes
import HeraldJSON
import Testing

@testable import HeraldConsole

struct OperationRowTests {
    private let harness = ConsoleHarness()

    @Test func `a row without its work keeps the console from starting, and the error names it`() {
        let row = AdminOperation<EchoedText, EchoedText>(.post, "echoes", role: .viewer, .changes, says: "Is new.")
        let error = #expect(throws: AdminWork.Incomplete.self) { try harness.console(with: row) }
        #expect(error?.description == "the admin API lacks the work or the row of POST /v1/echoes")
    }

    @Test func `work without its row keeps the console from starting`() {
        var api = AdminWork()
        api.on(EchoedText.operation) { $0.body }
        #expect(throws: AdminWork.Incomplete(names: ["POST /v1/control/echo"])) { try api.check([]) }
    }

    @Test func `the description has each row, its least role and the schemas of its types`() throws {
        let description = try OpenAPI.description(of: AdminAPI.rows)
        let paths = try #require(description.members?["paths"]?.members)
        for row in AdminAPI.rows {
            let operation = try #require(paths[row.path]?.members?[row.method.rawValue.lowercased()]?.members)
            let expected = row.role.role(drills: .admin)?.rawValue ?? "none"
            #expect(operation["x-role"]?.text == expected, "\(row.name)")
            #expect(operation["summary"]?.text?.isEmpty == false, "\(row.name)")
        }
        let schemas = try #require(description.members?["components"]?.members?["schemas"]?.members)
        let device = try #require(schemas["DeviceEntry"]?.members)
        let required = device["required"]?.elements?.compactMap(\.text)
        #expect(required == ["id", "serial", "created", "expires", "connected", "labels"])
        let created = try #require(device["properties"]?.members?["created"]?.members)
        #expect(created["format"]?.text == "date-time")
        #expect(schemas["Page.DeviceEntry"]?.members?["required"]?.elements?.compactMap(\.text) == ["items", "next"])
    }

    @Test func `words are about members that a type has`() throws {
        let book = SchemaBook()
        for row in AdminAPI.rows { _ = (try row.bodySchema(book), try row.answerSchema(book)) }
        #expect(book.needlessFacts == [])
    }

    @Test func `what is in no table needs an admin, and counts as a change`() {
        let row = OperationRow.unknown(.post, "/v1/anything/new")
        #expect(row.role == .admin && row.isChange)
        #expect(OperationRow.unknown(.get, "/v1/anything").role == .admin)
    }

    @Test func `drills have the role that the operator chose, and nothing else has it`() {
        for row in AdminAPI.rows {
            let role = row.role.role(drills: .sender)
            #expect(role == (row.role == .drills ? .sender : row.role.role(drills: .admin)), "\(row.path)")
        }
        #expect(AdminAPI.advanceClock.row.role == .admin && AdminAPI.drills.row.role == .viewer)
        let drills = AdminAPI.rows.filter { $0.role == .drills }
        #expect(drills.count == 4)
    }

    @Test func `each role has the rights of those before it`() {
        #expect(ConsoleRole.allCases.sorted() == [.viewer, .sender, .admin])
    }

    @Test func `a request is in the table once`() {
        #expect(Set(AdminAPI.rows.map(\.name)).count == AdminAPI.rows.count)
    }

    @Test func `a client's path has its arguments in their places, and escaped`() {
        let row = AdminAPI.deviceToken.row
        let path = row.uri([Ask.id("a/b"), Ask.topic("com.example.app"), Ask.environment("sandbox")])
        #expect(path == "/v1/devices/a%2Fb/apps/com%2Eexample%2Eapp/token?environment=sandbox")
    }
}
