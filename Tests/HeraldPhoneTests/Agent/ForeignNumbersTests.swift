import Foundation
import HeraldDevice
import HeraldJSON
import HeraldModel
import Testing

@testable import HeraldPhone

/// Numbers that no `Double` or `Int` holds, and files that somebody else wrote.
@Suite struct ForeignNumbersTests {
    private static let numbers = #"{"a":1e400,"b":9007199254740993,"c":18446744073709551615,"d":1.10,"e":[-0,0.1e1]}"#

    private func start(_ members: String) -> String {
        #"{"aps":{"event":"start","attributes-type":"A","attributes":{},"content-state":\#(Self.numbers),\#(members)}}"#
    }

    @Test func `a Live Activity keeps every digit in snapshot, record and state`() throws {
        var kit = try PhoneKit()
        let record = try #require(kit.receive(start(#""timestamp":1"#), type: .liveactivity).record)
        #expect(record.activity?.contentState?.description == Self.numbers && record.because.isEmpty)
        #expect(try JSON(encoding: record).description.contains(Self.numbers))
        #expect(try JSON(encoding: kit.snapshot).description.contains(Self.numbers))
        _ = try kit.restart()
        #expect(kit.snapshot.activities.first?.content.description == Self.numbers)
    }

    @Test func `an argument of a text is shown as it was written`() throws {
        var kit = try PhoneKit()
        kit.phone.bundles[PhoneKit.topic]?.texts["en"]?["N"] = LocalizedText(format: "%@, %@ and %@")
        let alert = #"{"loc-key":"N","loc-args":[9007199254740993,1.10,1e400]}"#
        #expect(kit.receive(#"{"aps":{"alert":\#(alert)}}"#).record?.body == "9007199254740993, 1.10 and 1e400")
    }

    @Test(
        arguments: ["timestamp", "stale-date"],
        ["1e300", "1e400", "-1e400", "1800000000000", "253402300800", "-62135596801", #""soon""#, "[]", "true"]
    )
    func `what is not a time is ignored by name`(key: String, value: String) throws {
        var kit = try PhoneKit()
        let record = try #require(kit.receive(start(#""\#(key)":\#(value)"#), type: .liveactivity).record)
        #expect(record.because == ["aps.\(key) is not a time in UNIX seconds: it is ignored"])
        #expect(record.activity?.staleDate == nil && kit.snapshot.activities.count == 1)
    }

    @Test func `a dismissal at no time is as one without a date`() throws {
        var kit = try PhoneKit()
        kit.receive(start(#""timestamp":1"#), type: .liveactivity)
        let end = #"{"aps":{"event":"end","dismissal-date":1e400}}"#
        let record = try #require(kit.receive(end, type: .liveactivity).record)
        #expect(record.because == ["aps.dismissal-date is not a time in UNIX seconds: it is ignored"])
        #expect(record.activity?.dismissalDate == kit.now.unixSeconds + Presenter.activitySeconds)
    }

    @Test func `null is neither a value nor a reason`() throws {
        var kit = try PhoneKit()
        let nulls = #""timestamp":null,"stale-date":null,"badge":null"#
        #expect(kit.receive(start(nulls), type: .liveactivity).record?.because == [])
        #expect(kit.receive(#"{"aps":{"alert":"x","badge":null}}"#).record?.because == [])
    }

    @Test(arguments: ["1e400", "9007199254740993", "1000000000", "1.5", "-1", #""7""#, "true"])
    func `a badge that no icon shows is ignored by name`(badge: String) throws {
        var kit = try PhoneKit()
        kit.receive(#"{"aps":{"badge":3}}"#)
        let record = try #require(kit.receive(#"{"aps":{"alert":"x","badge":\#(badge)}}"#).record)
        #expect(record.because == ["aps.badge is not a whole number from 0 to 999999999: it is ignored"])
        #expect(record.shown && kit.app?.badge == 3)
    }

    @Test(arguments: [("7.0", 7), ("1.2e1", 12), ("0e99999999999999999999", 0), ("999999999", 999_999_999)])
    func `a whole number is one however it is spelled`(badge: String, number: Int) throws {
        var kit = try PhoneKit()
        #expect(kit.receive(#"{"aps":{"badge":\#(badge)}}"#).record?.badge.after == number)
    }

    @Test(arguments: [("1.0", true), ("1e0", true), ("10e-1", true), ("1", true), ("1e400", false), ("true", false)])
    func `content-available is one however it is spelled`(value: String, wakes: Bool) throws {
        var kit = try PhoneKit(programs: [.background])
        let record = kit.receive(#"{"aps":{"content-available":\#(value)}}"#, type: .background).record
        #expect(record?.backgroundLaunch == wakes)
    }

    @Test(arguments: [("1e400", 1.0), ("-1e400", 1.0), ("7", 1.0), ("-1", 0.0), (#""loud""#, 1.0)])
    func `a volume out of range is limited by name`(volume: String, played: Double) throws {
        var kit = try PhoneKit()
        let sound = #"{"critical":1,"name":"default","volume":\#(volume)}"#
        let record = try #require(kit.receive(#"{"aps":{"sound":\#(sound)}}"#).record)
        #expect(record.volume == played)
        #expect(record.because.contains("the volume of the sound is not a number from 0 to 1"))
    }

    @Test func `a payload is shown up to 500 levels, and deeper ones are recorded and skipped`() throws {
        func payload(_ depth: Int) -> String {
            let arrays = String(repeating: "[", count: depth - 1) + String(repeating: "]", count: depth - 1)
            return #"{"aps":{"alert":"x"},"d":\#(arrays)}"#
        }
        var kit = try PhoneKit()
        #expect(kit.receive(payload(500)).record?.shown == true)
        try kit.does(.tap(id: try #require(kit.newest).id))
        let snapshot = try JSON.encode(kit.snapshot)
        #expect(try JSON.decode(PhoneSnapshot.self, from: snapshot) == kit.snapshot)
        _ = try kit.restart()
        let record = try #require(kit.receive(payload(501)).record)
        #expect(record.because == ["the payload is nested deeper than 500 levels"] && !record.shown)
        let deep = PayloadCheck(Array(payload(501).utf8), pushType: .alert, now: 0)
        #expect(deep.isAccepted && deep.localFault != nil)
        #expect(deep.findings.map(\.message) == ["the payload is nested deeper than 500 levels: nothing is shown"])
    }

    @Test func `a local notification keeps every digit, and its numbers are checked`() throws {
        var kit = try PhoneKit()
        func schedule(_ payload: String, after: String = "10") throws {
            let text =
                #"{"do":"schedule","topic":"\#(PhoneKit.topic)","notification":"n","after":\#(after),"payload":\#(payload)}"#
            try kit.does(try JSON.decode(PhoneAction.self, from: Array(text.utf8)))
        }
        try schedule(#"{"aps":{"alert":"x"},"own":\#(Self.numbers)}"#)
        #expect(try JSON(encoding: kit.phone.state.pending.list(of: nil)).description.contains(Self.numbers))
        _ = try kit.restart()
        let effects = kit.phone.tick(kit.now + .seconds(10))
        let records = effects.compactMap { if case .record(let record) = $0 { record } else { nil } }
        #expect(records.first?.payload == #"{"aps":{"alert":"x"},"own":\#(Self.numbers)}"#)
        for badge in ["1e400", "-1", "1.5", "9007199254740993"] {
            #expect(throws: DeviceError.self) { try schedule(#"{"aps":{"alert":"x","badge":\#(badge)}}"#) }
        }
        for after in ["1e400", "1e300", "0", "-1", "null"] {
            #expect(throws: DecodingError.self) { try schedule(#"{"aps":{"alert":"x"}}"#, after: after) }
        }
        let deep = String(repeating: "[", count: 500) + String(repeating: "]", count: 500)
        #expect(throws: DeviceError.self) { try schedule(#"{"aps":{"alert":"x"},"d":\#(deep)}"#) }
    }

    @Test func `categories whose names differ by normalization alone are read`() throws {
        let text =
            "{\"do\":\"categories\",\"topic\":\"com.example.app\",\"categories\":{\"\u{E9}\":{\"actions\":[]},"
            + "\"e\u{301}\":{\"actions\":[]}}}"
        guard case .categories(_, let categories) = try JSON.decode(PhoneAction.self, from: Array(text.utf8)) else {
            Issue.record("another action")
            return
        }
        #expect(categories.count == 1)
    }

    @Test func `an edited state with numbers out of range is used within the limits`() throws {
        let kit = try PhoneKit()
        var state = kit.phone.state
        state.clockAhead = -1e300
        state.lastNumber = .max
        var phone = Phone(device: "d1", service: "s", state: state)
        #expect(phone.state.clockAhead == -PhoneLimits().clockSeconds)
        #expect(phone.nextNumber() > 0)
        #expect(WallTime(unixSeconds: 1e300).rfc3339 == "9999-12-31T23:59:59.000Z")
        #expect(WallTime(unixSeconds: -1e300).rfc3339 == "0001-01-01T00:00:00.000Z")
    }

    @Test func `a state whose parts cannot be read is set aside, and its other parts are used`() throws {
        let temporary = try TemporaryFolder()
        let folder = try AgentFolder(temporary.path)
        var state = PhoneState()
        state.languages = ["de"]
        var members = try #require(JSON(encoding: state).members)
        members["notifications"] = .string("of another version")
        members["clockAhead"] = .number(try #require(JSON(Array("1e400".utf8)).number))
        let bytes = JSON.object(members).bytes
        try AgentFile.replace(folder.statePath, with: bytes)
        let read = try folder.readState()
        #expect(read.state == state)
        #expect(read.fault?.hasSuffix("the device has lost clockAhead, notifications") == true)
        #expect(FileManager.default.contents(atPath: folder.statePath + ".unreadable").map(Array.init) == bytes)
        // Said once: the readable parts are the file now.
        let again = try folder.readState()
        #expect(again.state == state && again.fault == nil)
        try AgentFile.replace(folder.statePath, with: Array("{".utf8))
        let empty = try folder.readState()
        #expect(empty.state == PhoneState() && empty.fault?.hasSuffix("the device is empty") == true)
        #expect(FileManager.default.fileExists(atPath: folder.statePath + ".unreadable-2"))
    }

    @Test func `a line that cannot be read is set aside, and the others stay`() throws {
        let temporary = try TemporaryFolder()
        let path = temporary.path + "/shown.jsonl"
        let record = DisplayRecord(apnsID: "1", topic: PhoneKit.topic, received: "", state: .background, badge: 0)
        let line = try JSON.encode(record) + Array("\n{\"former\":1}\n".utf8)
        try AgentFile.replace(path, with: line)
        let log = try DisplayLog(path)
        #expect(log["1"] != nil && log.fault?.contains("a line of") == true)
        #expect(
            FileManager.default.contents(atPath: path + ".unreadable").map { String(decoding: $0, as: UTF8.self) }
                == "{\"former\":1}\n"
        )
        #expect(try DisplayLog(path).fault == nil)
    }

    @Test func `a notification that the state has no room for is recorded, and skipped`() async throws {
        let temporary = try TemporaryFolder()
        var limits = PhoneLimits()
        limits.stateBytes = 4_000
        let agent = try DeviceAgent(
            connection: DetachedConnection(),
            device: "d1",
            service: "s",
            folder: try AgentFolder(temporary.path),
            clock: MachineClock(),
            limits: limits
        )
        try await agent.install(topic: PhoneKit.topic, allow: [.alert])
        let kit = try PhoneKit()
        let long = String(repeating: "x", count: 3_900)
        try await agent.receive(kit.notification(#"{"aps":{"alert":"\#(long)"}}"#, id: NotificationID(high: 1, low: 1)))
        let record = try #require(await agent.displayRecord(NotificationID(high: 1, low: 1).description))
        #expect(!record.shown && record.because.first?.hasPrefix("the device cannot handle it:") == true)
        let snapshot = await agent.snapshot()
        #expect(snapshot.notifications.isEmpty && snapshot.log.contains { $0.text.contains("was skipped") })
        try await agent.receive(kit.notification(#"{"aps":{"alert":"short"}}"#, id: NotificationID(high: 1, low: 2)))
        #expect(await agent.snapshot().notifications.count == 1)
    }
}
