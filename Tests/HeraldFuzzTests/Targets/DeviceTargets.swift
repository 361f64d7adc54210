import HeraldDevice
import HeraldJSON
import HeraldModel

@testable import HeraldCommand
@testable import HeraldPhone
@testable import HeraldService

extension FuzzTarget {
    static let device: [FuzzTarget] = [
        FuzzTarget("device", upTo: 4097, device)
    ]

    /// A payload that the service accepts, on its whole way through a device; the first byte says how it comes.
    ///
    /// It is received, shown, acted on, told to its app and printed. Snapshot, display record and state are written and read
    /// again, and a device begins from them.
    @Sendable
    private static func device(_ bytes: [UInt8]) {
        guard let way = bytes.first, let topic = Topic("com.example.app"), let id = DeviceID("device") else { return }
        let payload = Array(bytes.dropFirst())
        guard case .object = PayloadScanner.scan(payload) else { return }
        do {
            var path = try DeviceWay(way, topic: topic, id: id)
            try path.present(payload)
        } catch {
            check(false, "an error on the way of a payload: \(error)")
        }
    }
}

/// The way of one payload through a device.
private struct DeviceWay {
    private let topic: Topic
    private let id: DeviceID
    private let pushType: PushType
    private let isLocal: Bool
    private let now = WallTime(seconds: 1_800_000_000)
    private var phone: Phone

    init(_ way: UInt8, topic: Topic, id: DeviceID) throws {
        self.topic = topic
        self.id = id
        let types: [PushType] = [.alert, .background, .liveactivity, .voip]
        pushType = types[Int(way & 3)]
        isLocal = way & 4 != 0
        phone = Phone(device: id.name, service: "localhost:5223")
        _ = try phone.install(AppInformation(topic: topic), nil, allow: Set(NotificationKind.allCases), now)
        _ = try phone.appConnected(topic, wants: nil, now)
        if way & 8 != 0 { try phone.appMoved(topic, to: .foreground) }
        if way & 16 != 0 { _ = try phone.perform(.lock, now) }
        if way & 32 != 0 {
            let start =
                #"{"aps":{"event":"start","timestamp":1,"attributes-type":"A","attributes":{},"content-state":{"n":1e400}}}"#
            _ = phone.receive(notification(Array(start.utf8), .liveactivity, 1), now)
        }
    }

    private func notification(_ payload: [UInt8], _ type: PushType, _ number: UInt64) -> ReceivedNotification {
        ReceivedNotification(
            topic: topic,
            payload: payload,
            id: NotificationID(high: 1, low: number),
            pushType: type,
            priority: .immediate,
            collapseID: "collapse",
            expiresIn: nil,
            isRepeated: false
        )
    }

    mutating func present(_ payload: [UInt8]) throws {
        if isLocal { try schedule(payload) }
        let notification = notification(payload, pushType, 2)
        let reception = phone.receive(notification, now)
        guard let record = reception.record else { return check(false, "a notification without a record") }
        let event = AgentEvent.notification(notification, record, isRepeated: false)
        check(!AgentReport.lines(event, device: id).isEmpty, "an event without words")
        check(JSON.Object(Array(AgentEventLine(event, device: id).text.utf8), rules: around) != nil, "no line of JSON")
        try perform(reception.effects)
        try keep()
        if let shown = phone.snapshot(now).notifications.first {
            try perform(try phone.perform(.tap(id: shown.id), now))
            try keep()
        }
        for seconds: Int64 in [1, 40, 4 * 3600, 86_400] {
            try perform(phone.tick(now + .seconds(seconds)))
            try keep()
        }
    }

    /// Schedules the payload as a local notification, which may be refused with words.
    private mutating func schedule(_ payload: [UInt8]) throws {
        guard let json = try? JSON(payload, rules: .payload) else { return }
        let action = PhoneAction.schedule(
            topic,
            LocalNotification(id: "local", payload: json, trigger: .after(.seconds(30)))
        )
        check(try JSON.object(action.request()).decode() == action, "a request is read in another way")
        do {
            try perform(try phone.perform(action, now))
        } catch let error as DeviceError {
            check(!error.message.isEmpty, "a refusal without words")
        }
        let pending = try JSON(encoding: phone.state.pending.list(of: nil)).bytes
        check(
            try JSON.decode(from: pending) == phone.state.pending.list(of: nil),
            "a pending one is read in another way"
        )
    }

    /// Lines for apps and for the display log, as they are read.
    private func perform(_ effects: [PhoneEffect]) throws {
        for effect in effects {
            switch effect {
            case .record(let record):
                let line = try JSON.encode(record)
                check(!line.contains(UInt8(ascii: "\n")), "a record of more than one line")
                check(try JSON.decode(from: line, rules: .strict) == record, "a record is read in another way")
                check(!record.words.isEmpty, "a record without words")
            case .notifyApp(_, let message):
                let line = LocalMessage.line(message)
                check(line.last == UInt8(ascii: "\n") && line.count { $0 == UInt8(ascii: "\n") } == 1, "not one line")
                check(LocalApp.Event(line) != nil, "an app cannot read its event")
            default: break
            }
        }
    }

    /// Writes snapshot and state, reads them again, and begins from them.
    private func keep() throws {
        let snapshot = phone.snapshot(now)
        let shown = try JSON(encoding: snapshot)
        check(try JSON.decode(from: shown.bytes) == snapshot, "a snapshot is read in another way")
        check(try AgentReport.lines(shown, folder: nil).count >= 3, "a snapshot without words")
        let state = try JSON.decode(PhoneState.self, from: JSON.encode(phone.state))
        check(state == phone.state, "a state is read in another way")
        var again = Phone(device: "device", service: "localhost:5223", state: state)
        _ = again.start(now)
        _ = try JSON.encode(again.snapshot(now))
    }

    /// The payload is printed byte for byte, however deep.
    private var around: JSON.Rules { JSON.Rules(isLenient: true, maximumDepth: 5000) }
}
