import HeraldDevice
import HeraldModel
import Testing

@testable import HeraldPhone

/// Alert styles, and the notification over an unlocked screen.
@Suite struct PhoneStyleTests {
    private let all = Set(NotificationKind.allCases)

    @Test func `a banner goes away by itself and stays in the list`() throws {
        var kit = try PhoneKit()
        kit.receive(#"{"aps":{"alert":"a"}}"#)
        kit.now = kit.now + .seconds(4)
        _ = kit.phone.tick(kit.now)
        #expect(kit.snapshot.banner == kit.newest?.id && kit.phone.nextTick == kit.now.unixSeconds + 1)
        kit.now = kit.now + .seconds(1)
        _ = kit.phone.tick(kit.now)
        #expect(kit.snapshot.banner == nil && kit.snapshot.notifications.count == 1 && kit.phone.nextTick == nil)
    }

    @Test func `a banner goes away when the clock is set back`() throws {
        var kit = try PhoneKit()
        kit.receive(#"{"aps":{"alert":"a"}}"#)
        kit.now = kit.now - .seconds(3600)
        _ = kit.phone.tick(kit.now)
        #expect(kit.snapshot.banner == nil)
    }

    @Test func `an alert stays until it is answered, below a later banner and over a restart`() throws {
        var kit = try PhoneKit(allow: nil)
        try kit.does(.permit(PhoneKit.topic, all, style: .alert))
        let record = try #require(kit.receive(#"{"aps":{"alert":"a"}}"#).record)
        #expect(record.style == .alert && record.words.first == "shown as an alert: a" && kit.app?.style == .alert)
        let alert = try #require(kit.newest?.id)
        kit.now = kit.now + .seconds(3600)
        _ = kit.phone.tick(kit.now)
        #expect(kit.snapshot.banner == alert && kit.newest?.style == .alert)
        try kit.does(.permit(PhoneKit.topic, all, style: .banner))
        kit.receive(#"{"aps":{"alert":"b"}}"#)
        #expect(kit.snapshot.banner == kit.newest?.id)
        kit.now = kit.now + .seconds(5)
        _ = kit.phone.tick(kit.now)
        #expect(kit.snapshot.banner == alert)
        try kit.does(.lock)
        #expect(kit.snapshot.banner == nil)
        _ = try kit.restart()
        try kit.does(.unlock)
        #expect(kit.snapshot.banner == alert)
        try kit.does(.close(id: alert))
        #expect(kit.snapshot.banner == nil)
    }

    @Test func `without a style the alert is only in the list, and the style outlives permissions`() throws {
        var kit = try PhoneKit()
        try kit.does(.permit(PhoneKit.topic, all, style: AlertStyle.none))
        try kit.does(.permit(PhoneKit.topic, [.alert]))
        let record = try #require(kit.receive(#"{"aps":{"alert":"a"}}"#).record)
        #expect(record.place == .list && record.because == ["the user's alert style for the app is none"])
        #expect(kit.snapshot.banner == nil && kit.snapshot.notifications.count == 1)
    }
}
