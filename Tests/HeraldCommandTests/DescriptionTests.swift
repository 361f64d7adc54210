import HeraldJSON
import Testing

@testable import HeraldConsole
@testable import HeraldService

struct DescriptionTests {
    @Test func `the description has each row, its least role and the schemas of its types`() throws {
        let description = try OpenAPI.description(of: AdminAPI.all)
        let paths = try #require(description.members?["paths"]?.members)
        for row in AdminAPI.all where !row.isForSocket {
            let method = row.name.prefix { $0 != " " }.lowercased()
            let operation = try #require(paths[row.path]?.members?[method]?.members)
            let expected = row.role.role(drills: .admin)?.rawValue ?? "none"
            #expect(operation["x-role"]?.text == expected, "\(row.name)")
            #expect(operation["summary"]?.text?.isEmpty == false, "\(row.name)")
        }
        #expect(try OpenAPI.yaml(of: AdminAPI.all).hasPrefix("openapi: \"3.1.0\"\n"))
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
        for row in AdminAPI.all { _ = (try row.bodySchema(book), try row.answerSchema(book)) }
        #expect(book.needlessFacts == [])
    }
}
