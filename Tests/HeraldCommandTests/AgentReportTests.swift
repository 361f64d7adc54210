import Foundation
import HeraldDevice
import HeraldModel
import Testing

@testable import HeraldCommand
@testable import HeraldService

@Suite struct AgentReportTests {
    private func device() throws -> DeviceID { try #require(DeviceID("kitchen")) }

    private func notification(payload: String, repeated: Bool = false) throws -> DeviceEvent {
        .notification(
            ReceivedNotification(
                topic: try #require(Topic("com.example.chat")),
                payload: Array(payload.utf8),
                id: NotificationID(high: 1, low: 2),
                pushType: .alert,
                priority: .immediate,
                collapseID: "a \"b\"",
                expiresIn: .seconds(60),
                isRepeated: repeated
            )
        )
    }

    @Test func `a notification is two lines for people`() throws {
        let lines = AgentReport.lines(try notification(payload: #"{"aps":{"alert":"Grüße 👨‍👩‍👧"}}"#), device: try device())
        #expect(
            lines == [
                "notification for com.example.chat: apns-id 00000000-0000-0001-0000-000000000002 type alert priority 10 "
                    + "collapse-id a \"b\"",
                #"  {"aps":{"alert":"Grüße 👨‍👩‍👧"}}"#,
            ]
        )
    }

    @Test func `a payload cannot control the terminal`() throws {
        let lines = AgentReport.lines(try notification(payload: "{\"a\":\"\u{9B}31m\u{202E}\"}"), device: try device())
        #expect(lines.last == #"  {"a":"\u{9b}31m\u{202e}"}"#)
    }

    @Test func `a notification is one line of JSON, with its payload as it came`() throws {
        let event = try notification(payload: "{\n \"aps\": {\"badge\": 1e2}\r\n}", repeated: true)
        let line = AgentEventLine(event, device: try device()).text
        #expect(
            line
                == #"{"apns_id":"00000000-0000-0001-0000-000000000002","collapse_id":"a \"b\"","event":"notification","#
                + #""expires_in":60,"priority":10,"push_type":"alert","repeated":true,"topic":"com.example.chat","#
                + #""payload":{  "aps": {"badge": 1e2}  }}"#
        )
        #expect(try JSONSerialization.jsonObject(with: Data(line.utf8)) is [String: Any])
    }

    @Test(arguments: ["", "no \"JSON\"\n", "{"])
    func `a payload that is not JSON is a string`(payload: String) throws {
        let line = AgentEventLine(try notification(payload: payload), device: try device()).text
        let object = try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any]
        #expect(object?["payload"] as? String == payload)
    }

    @Test func `every event has its line`() throws {
        let device = try device()
        let topic = try #require(Topic("com.example.chat"))
        let token = DeviceToken(words: (1, 2, 3, 4))
        let events: [DeviceEvent] = [
            .connected, .token(token, for: topic), .appRefused(topic, reason: "no"),
            .disconnected(reason: "gone", nextAttempt: .milliseconds(1590)),
        ]
        #expect(
            events.flatMap { AgentReport.lines($0, device: device) } == [
                "connected as kitchen", "token for com.example.chat: \(token.hex)",
                "com.example.chat is not registered: no", "disconnected: gone; connecting again in 1.5 s",
            ]
        )
        #expect(
            events.map { AgentEventLine($0, device: device).text } == [
                #"{"device":"kitchen","event":"connected"}"#,
                #"{"event":"token","token":"\#(token.hex)","topic":"com.example.chat"}"#,
                #"{"event":"refused","reason":"no","topic":"com.example.chat"}"#,
                #"{"event":"disconnected","next_attempt":1.5,"reason":"gone"}"#,
            ]
        )
    }
}
