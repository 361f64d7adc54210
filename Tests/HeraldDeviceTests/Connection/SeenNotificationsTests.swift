import Foundation
import HeraldModel
import Testing

@testable import HeraldDevice

@Suite struct SeenNotificationsTests {
    private func key(_ number: UInt64, _ topic: String = "a.b", payload: String = "{}") throws -> SeenNotifications.Key
    {
        let notification = ReceivedNotification(
            topic: try #require(Topic(topic)),
            payload: Array(payload.utf8),
            id: NotificationID(high: 1, low: number),
            pushType: nil,
            priority: nil,
            collapseID: nil,
            expiresIn: nil,
            isRepeated: false
        )
        return try #require(SeenNotifications.Key(notification))
    }

    @Test func `the newest are remembered`() throws {
        var seen = SeenNotifications(limit: 3)
        for number in 0..<10 {
            for _ in 0..<2 { seen.insert(try key(UInt64(number))) }
            #expect(seen.count == min(number + 1, 3))
        }
        #expect(try (0..<10).filter { seen.contains(try key(UInt64($0))) } == [7, 8, 9])
    }

    @Test func `notifications are equal only with equal topic and payload`() throws {
        #expect(try key(1) == key(1))
        #expect(try key(1) != key(1, payload: "{ }"))
        #expect(try key(1) != key(1, "a.c"))
        #expect(try key(1) != key(2))
    }

    @Test func `they are kept as texts, oldest first`() throws {
        var seen = SeenNotifications(limit: 3)
        for number in 0..<8 { seen.insert(try key(UInt64(number))) }
        let json = try JSONEncoder().encode(seen)
        let texts = try JSONDecoder().decode([String].self, from: json)
        #expect(texts.count == 3)
        #expect(texts[0].hasPrefix("00000000-0000-0001-0000-000000000005/"))
        let read = try JSONDecoder().decode(SeenNotifications.self, from: json)
        #expect(try (0..<8).filter { read.contains(try key(UInt64($0))) } == [5, 6, 7])
    }

    @Test(arguments: ["[]", #"["x"]"#, #"["/"]"#, #"["00000000-0000-0001-0000-000000000005/zz"]"#])
    func `malformed keys are skipped`(json: String) throws {
        #expect(try JSONDecoder().decode(SeenNotifications.self, from: Data(json.utf8)).count == 0)
    }
}
