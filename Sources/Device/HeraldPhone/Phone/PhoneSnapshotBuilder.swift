import HeraldJSON
import HeraldModel

/// Builds the snapshot of a phone.
struct PhoneSnapshotBuilder {
    let phone: Phone

    func snapshot(at now: WallTime) -> PhoneSnapshot {
        let state = phone.state
        var snapshot = PhoneSnapshot(device: phone.device, service: phone.service, time: now.unixSeconds)
        snapshot.connection = phone.connection
        snapshot.locked = state.isLocked
        snapshot.languages = state.languages
        snapshot.availableLanguages = Set(phone.bundles.values.flatMap(\.languages) + DeviceWords.languages).sorted()
        snapshot.network = state.hasNetwork
        snapshot.saving = state.isSaving
        snapshot.muted = state.isMuted
        snapshot.focus = state.isFocused
        snapshot.clock = state.clockAhead
        snapshot.timeZone = phone.zoneName
        snapshot.foreground = state.foreground
        let pending = Dictionary(grouping: state.pending.list(of: nil), by: \.topic)
        snapshot.apps = state.apps.map { view(of: $0, pending: pending[$0.topic] ?? []) }
            .sorted { ($0.name.lowercased(), $0.topic.name) < ($1.name.lowercased(), $1.topic.name) }
        snapshot.questions = state.apps.filter { $0.permission == nil }.sorted { $0.number < $1.number }.map(\.topic)
        let words = DeviceWords(for: state.languages)
        snapshot.words = words
        snapshot.notifications = state.notifications.all.map { view(of: $0, words) }
        snapshot.banner = state.isLocked ? nil : state.notifications.banner
        snapshot.lockAlert = state.notifications.lockAlerts.first
        snapshot.activities = state.activities.all.map(\.view)
        snapshot.sounds = phone.sounds
        snapshot.log = phone.log
        return snapshot
    }

    /// A notification with the device's own words in its present language.
    private func view(of shown: PhoneState.Shown, _ words: DeviceWords) -> PhoneSnapshot.Notification {
        var view = shown.view
        if !view.buttons.isEmpty { view.buttons[0] = words[.close] }
        guard shown.opensWithOwnWord else { return view }
        if view.slider != nil { view.slider = words[.view] }
        if view.buttons.count > 1 { view.buttons[1] = words[.view] }
        return view
    }

    private func view(of app: PhoneState.App, pending notifications: [PendingNotification]) -> PhoneSnapshot.App {
        var view = PhoneSnapshot.App(topic: app.topic, name: app.information.name)
        view.icon = app.information.icon != nil
        view.badge = app.badge
        view.state = app.state
        view.environment = app.information.environment
        view.token = app.tokens[app.topic.name]
        view.permission = app.permission
        view.style = app.style
        view.wants = app.information.wants
        view.refused = app.refused
        view.screenURL = app.information.screenURL
        view.openedWith = app.openedWith.flatMap { object(in: $0) }
        view.received = phone.received[app.topic]
            .map {
                PhoneSnapshot.Delivery(
                    apnsID: $0.apnsID,
                    local: $0.local,
                    time: $0.time,
                    payload: object(in: $0.payload)
                )
            }
        view.action = phone.pressed[app.topic].map { pressed in
            PhoneSnapshot.PressedAction(
                apnsID: pressed.arrival.apnsID,
                local: pressed.arrival.local,
                payload: object(in: pressed.arrival.payload),
                action: pressed.action,
                text: pressed.text
            )
        }
        view.launchImage = app.launchImage
        view.launchPicture = app.launchImage.flatMap { picture($0, app.topic) }
        view.pending = notifications.map { pending($0) }
        view.channels = phone.state.channels.filter { $0.topic == app.topic }.map { one in
            var channel = PhoneSnapshot.Channel(id: one.id)
            (channel.refused, channel.newest) = (one.refused, one.newest)
            return channel
        }
        return view
    }

    private func pending(_ pending: PendingNotification) -> PhoneSnapshot.Pending {
        var view = PhoneSnapshot.Pending(id: pending.notification.id, next: pending.next)
        let bundle = phone.bundles[pending.topic]
        let resolver = AlertResolver(bundle: bundle, language: bundle?.language(for: phone.state.languages))
        let alert = pending.notification.payload.members?["aps"]?.members?["alert"].flatMap { resolver.alert($0) }
        view.title = alert?.title
        view.body = alert?.body
        if case .every(let rule) = pending.notification.trigger { view.every = rule.description }
        return view
    }

    /// The file of an image that views can show: not a storyboard, not in an asset catalog.
    private func picture(_ name: String, _ topic: Topic) -> String? {
        guard let file = phone.bundles[topic]?.image(name) else { return nil }
        return [".png", ".jpg", ".jpeg", ".svg"].contains { file.lowercased().hasSuffix($0) } ? file : nil
    }

    private func object(in payload: some Sequence<UInt8>) -> JSON? {
        JSON.Object(Array(payload), rules: .payload).map { .object($0) }
    }
}
