import HeraldConsole
import HeraldMailbox
import HeraldModel
import HeraldProvider
import HeraldTrust
import HeraldWire
import NIOCore
import Testing

@testable import HeraldCommand
@testable import HeraldService

struct ConsoleToolsTests {
    private let token = PushToken(DeviceToken(words: (1, 2, 3, 4)))

    private func bytes(_ notification: BinaryNotification) -> [UInt8] {
        var buffer = ByteBuffer()
        buffer.writeNotification(notification)
        return Array(buffer.readableBytesView)
    }

    private func answer(_ bytes: [UInt8]) -> FrameAnswer {
        FrameAnswer(bytes, payloadBytes: 2048, frameBytes: 4096)
    }

    @Test(arguments: BinaryNotification.Form.allCases)
    func `a frame of each command is read`(form: BinaryNotification.Form) throws {
        let notification = BinaryNotification(
            form: form,
            identifier: form == .simple ? nil : 7,
            expiration: form == .simple ? nil : 60,
            priority: form == .framed ? .conserving : nil,
            token: token,
            payload: Array("{}".utf8)
        )
        let found = answer(bytes(notification) + [form.rawValue])
        let item = try #require(found.items.first)
        #expect(found.items.count == 1 && found.rest == 1)
        #expect(item.command == form.rawValue && item.payload == "{}" && item.status == 0)
        #expect(item.identifier == notification.identifier && item.expiration == notification.expiration)
        #expect(item.token?.count == 9)
    }

    @Test func `a fault ends the reading, with its status`() {
        let long = BinaryNotification(token: token, payload: [UInt8](repeating: 32, count: 2049))
        let found = answer(bytes(BinaryNotification(token: token, payload: [123, 125])) + bytes(long) + [1, 2])
        #expect(found.items.map(\.status) == [0, 7])
        #expect(found.items.last?.fault == "the payload has more than 2048 bytes")
        #expect(found.rest > 0)
    }

    @Test func `at most a hundred frames are read`() {
        let one = bytes(BinaryNotification(token: token, payload: [123, 125]))
        let found = answer((1...120).flatMap { _ in one })
        #expect(found.items.count == 100 && found.rest == 20 * one.count)
    }

    @Test func `a token is live, dead, unknown or foreign`() {
        let token = DeviceToken(words: (1, 2, 3, 4))
        let slot = Slot(device: DeviceNumber(1), app: AppNumber(1))
        let app = Topic("com.example.app").map { App(topic: $0, environment: .sandbox) }
        func verdict(_ contents: TokenContents?, _ registration: Registration?) -> String {
            let answer = TokenAnswer(token, contents, device: DeviceID("phone"), app: app, registration: registration)
            #expect(answer.live == answer.verdict.hasPrefix("valid"))
            return answer.verdict
        }
        let contents = TokenContents(slot: slot, generation: 1)
        let live = Registration(slot: slot, generation: 1, isLive: true, registered: WallTime(seconds: 0))
        #expect(verdict(contents, live) == "valid for com.example.app in sandbox")
        #expect(verdict(TokenContents(slot: slot, generation: 0), live).hasPrefix("Unregistered"))
        #expect(verdict(contents, nil).contains("unknown") && verdict(nil, nil).contains("no token key"))
    }

    @Test func `fields of the header are read, and others are named`() throws {
        let headers = try SendHeaders([
            "APNS-Priority": "5", "apns-push-type": "background", "apns-expiration": "0", "apns-collapse-id": "a",
            "herald-tag": "t",
        ])
        let topic = try #require(Topic("com.example.app"))
        let request = headers.request(token, topic, [])
        #expect(request.priority == .conserving && request.pushType == .background && request.expiration == .once)
        #expect(request.collapseID == "a" && request.tag == "t" && request.id == nil)
        let voip = try #require(Topic("com.example.app.voip"))
        #expect(try SendHeaders([:]).request(token, voip, []).pushType == .voip)
        for wrong in [
            ["x": "y"], ["apns-priority": "7"], ["apns-id": "1"], ["apns-push-type": "?"], ["herald-tag": ""],
            ["apns-collapse-id": "a\tb"], ["apns-collapse-id": ""], ["apns-collapse-id": "a\u{9F}"],
            ["apns-priority": "5", "APNS-Priority": "10"],
        ] {
            #expect(throws: AdminError.self) { try SendHeaders(wrong) }
        }
    }

    @Test(arguments: [
        "a\r\nb", "a\nb", "a\rb", "a\0b", "a\tb", " a", "a ", "a\u{7F}", String(repeating: "e\u{301}", count: 33),
    ])
    func `a value that no field may have is refused with the field's name`(tag: String) {
        let error = #expect(throws: AdminError.self) { try SendHeaders(["herald-tag": tag]) }
        #expect(error?.code == .badRequest && error?.message.hasPrefix("herald-tag is 1 to 64 characters") == true)
        let other = #expect(throws: AdminError.self) { try SendHeaders(["apns-priority\(tag)": "5"]) }
        #expect(other?.code == .badRequest)
    }
}
