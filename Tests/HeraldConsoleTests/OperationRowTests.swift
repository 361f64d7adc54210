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
