import HeraldDevice
import HeraldJSON
import HeraldModel
import Testing

@testable import HeraldPhone

/// Subscriptions to channels, and their broadcasts.
@Suite struct PhoneChannelTests {
    private static let id = "AAECAwQFBgcICQoLDA0ODw=="
    private let channel: DeviceChannel

    init() throws { channel = try #require(DeviceChannel(Self.id, of: PhoneKit.topic)) }

    private func broadcast(_ event: String = "update", _ low: UInt64 = 1) -> ReceivedNotification {
        let payload = #"{"aps":{"event":"\#(event)","content-state":{"score":\#(low)}}}"#
        return ReceivedNotification(
            topic: PhoneKit.topic,
            channel: Self.id,
            payload: Array(payload.utf8),
            id: NotificationID(high: 2, low: low),
            pushType: .liveactivity,
            priority: .immediate,
            collapseID: nil,
            expiresIn: nil,
            isRepeated: false
        )
    }

    private func start(_ channel: String) -> String {
        #"""
        {"aps":{"event":"start","attributes-type":"Game","attributes":{"id":1},"content-state":{"score":0},
        "input-push-channel":"\#(channel)"}}
        """#
    }

    @Test func `a subscription outlives restarts, and ends when it is told to or the app is removed`() throws {
        var kit = try PhoneKit()
        // Both alphabets, with or without padding, are one channel.
        for spelling in [Self.id, String(Self.id.dropLast(2))] {
            #expect(try kit.does(.subscribe(PhoneKit.topic, channel: spelling)) == [.subscribe(channel)])
        }
        #expect(try kit.restart().contains(.subscribe(channel)))
        #expect(kit.app?.channels.map(\.id) == [Self.id])
        #expect(try kit.does(.unsubscribe(PhoneKit.topic, channel: Self.id)) == [.unsubscribe(channel)])
        #expect(throws: DeviceError.self) { try kit.does(.unsubscribe(PhoneKit.topic, channel: Self.id)) }
        try kit.does(.subscribe(PhoneKit.topic, channel: Self.id))
        #expect(try kit.does(.remove(PhoneKit.topic)).contains(.unsubscribe(channel)))
        #expect(kit.phone.state.channels.isEmpty)
    }

    @Test func `a text that is not a channel, a foreign app, and one channel too many are refused in words`() throws {
        var kit = try PhoneKit()
        for text in ["", "abc", "dHN0", Self.id + "A", String(repeating: "ä", count: 99)] {
            let error = #expect(throws: DeviceError.self) {
                try kit.does(.subscribe(PhoneKit.topic, channel: text))
            }
            #expect(error?.message.hasSuffix("write its apns-channel-id, 24 characters of base64") == true)
        }
        #expect(throws: DeviceError.self) { try kit.does(.subscribe(PhoneKit.other, channel: Self.id)) }
        for number in 0..<kit.phone.limits.channels {
            let id = ChannelID(high: 0, low: UInt64(number)).base64
            try kit.does(.subscribe(PhoneKit.topic, channel: id))
        }
        let error = #expect(throws: DeviceError.self) {
            try kit.does(.subscribe(PhoneKit.topic, channel: ChannelID(high: 1, low: 0).base64))
        }
        #expect(error?.message.contains("unsubscribe from one first") == true)
        let record = try #require(kit.receive(start(ChannelID(high: 1, low: 0).base64), type: .liveactivity).record)
        #expect(record.because == ["its channel is left out: the device has 100 subscriptions"])
    }

    @Test func `the app hears the service's answer, and a refusal stays with the subscription until it is taken`()
        throws
    {
        var kit = try PhoneKit()
        try kit.does(.subscribe(PhoneKit.topic, channel: Self.id))
        let refused = kit.phone.channelAnswered(channel, refused: "deleted", kit.now)
        #expect(refused == [.notifyApp(PhoneKit.topic, .channel(channel, refused: "deleted"))])
        #expect(kit.app?.channels.first?.refused == "deleted")
        let taken = kit.phone.channelAnswered(channel, refused: nil, kit.now)
        #expect(taken == [.notifyApp(PhoneKit.topic, .channel(channel, refused: nil))])
        #expect(kit.app?.channels.first?.refused == nil)
    }

    @Test func `the newest broadcast of a channel is shown once, however often and late it comes again`() throws {
        var kit = try PhoneKit()
        try kit.does(.subscribe(PhoneKit.topic, channel: Self.id))
        let record = try #require(kit.phone.receive(broadcast(), kit.now).record)
        #expect(record.channel == Self.id && record.apnsID == NotificationID(high: 2, low: 1).description)
        #expect(kit.app?.channels.first?.newest == record.apnsID)
        // A thousand notifications later, nothing else remembers it.
        kit.phone.state.seen = SeenNotifications()
        _ = try kit.restart()
        #expect(kit.phone.receive(broadcast(), kit.now).isRepeated)
        #expect(!kit.phone.receive(broadcast("update", 2), kit.now).isRepeated)
    }

    @Test func `a Live Activity subscribes to its channel, which changes it, as long as it is on the screen`() throws {
        var kit = try PhoneKit()
        let started = kit.receive(start(Self.id), type: .liveactivity)
        #expect(started.effects.contains(.subscribe(channel)))
        // A later one of the app is not the channel's.
        kit.receive(start("").replacing("1}", with: "2}"), type: .liveactivity)
        #expect(kit.phone.receive(broadcast(), kit.now).record?.activity?.event == "update")
        let scores = kit.snapshot.activities.map { $0.content.members?["score"]?.description }
        #expect(scores.sorted { $0 ?? "" > $1 ?? "" } == ["1", "0"])
        #expect(try kit.restart().contains(.subscribe(channel)))
        #expect(kit.phone.receive(broadcast("end", 2), kit.now).record?.activity?.event == "end")
        kit.now = kit.now + .seconds(Int64(Presenter.activitySeconds))
        #expect(kit.phone.tick(kit.now).contains(.unsubscribe(channel)))
        #expect(kit.phone.state.channels.isEmpty)
    }

    @Test func `a broadcast starts no Live Activity, and a start names what is not a channel`() throws {
        var kit = try PhoneKit()
        try kit.does(.subscribe(PhoneKit.topic, channel: Self.id))
        let record = try #require(kit.phone.receive(broadcast("start"), kit.now).record)
        #expect(record.because == [Presentation.Reason.startByBroadcast.rawValue] && kit.snapshot.activities.isEmpty)
        for wrong in ["", "abc"] {
            let record = try #require(kit.receive(start(wrong), type: .liveactivity).record)
            #expect(record.because == [Presentation.Reason.badChannel.rawValue] && record.activity?.event == "start")
        }
    }

    @Test func `an app that runs gets the broadcast itself`() throws {
        var kit = try PhoneKit()
        try kit.does(.subscribe(PhoneKit.topic, channel: Self.id))
        let effects = kit.phone.receive(broadcast(), kit.now).effects
        let messages = effects.compactMap { effect -> AppNotification? in
            if case .notifyApp(PhoneKit.topic, .notification(let notification)) = effect { notification } else { nil }
        }
        #expect(messages.map(\.cause) == [.broadcast] && messages.first?.arrival.channel == Self.id)
    }
}
