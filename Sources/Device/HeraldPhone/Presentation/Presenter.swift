import HeraldJSON
import HeraldModel

/// Decides the presentation of a notification: a pure function of notification, app and situation.
public struct Presenter: Sendable {
    /// The time limit of background runs and service extensions, in seconds ("Pushing background updates to your app").
    public static let runSeconds = 30
    /// The time that a Live Activity stays after its end, in seconds, unless the payload says otherwise.
    public static let activitySeconds = 4.0 * 3600

    /// The app; nil if it is unknown.
    ///
    /// Keys then stand for themselves, and every sound exists.
    public let bundle: AppBundle?

    /// Creates a presenter for an app.
    public init(bundle: AppBundle?) {
        self.bundle = bundle
    }

    /// Decides the presentation of a notification; unknown keys of `aps`, and values of the wrong type, are ignored.
    public func presentation(of notification: IncomingNotification, in situation: DeviceSituation) -> Presentation {
        var presentation = Presentation()
        presentation.language = bundle?.language(for: situation.languages)
        let members: JSON.Object
        do throws(JSON.Failure) {
            guard let read = try JSON(notification.payload, rules: .payload).members else {
                presentation.reasons = [.unreadable]
                return presentation
            }
            members = read
        } catch {
            presentation.reasons = [error.reason == .tooDeep ? .tooDeep : .unreadable]
            return presentation
        }
        let isInForeground = situation.app == .foreground && !situation.isLocked
        switch notification.pushType ?? .alert {
        case .alert, .background: break
        case .liveactivity:
            changeActivity(&presentation, members["aps"]?.members ?? [:], of: notification, in: situation)
            return presentation
        default:
            presentation.isDeliveredToApp = true
            presentation.reasons = [.notShown]
            return presentation
        }
        presentation.isDeliveredToApp = isInForeground
        guard let aps = members["aps"]?.members else {
            presentation.reasons = [.noAps]
            return presentation
        }
        guard !isInForeground else {
            presentation.reasons = [.foreground]
            return presentation
        }
        wake(&presentation, aps, situation)
        show(&presentation, aps, alert: aps["alert"], of: notification, in: situation)
        number(&presentation, aps, situation)
        play(&presentation, aps, sound: aps["sound"], in: situation)
        runExtension(&presentation, aps)
        return presentation
    }

    /// Shows the alert with its buttons and image.
    private func show(
        _ presentation: inout Presentation,
        _ aps: JSON.Object,
        alert value: JSON?,
        of notification: IncomingNotification,
        in situation: DeviceSituation
    ) {
        let resolver = AlertResolver(
            bundle: bundle,
            language: presentation.language,
            allowsInnerKeys: notification.pushType == .liveactivity
        )
        guard let value, value != .null else {
            let isSilent = presentation.backgroundSeconds != nil || aps["content-available"]?.isOne == true
            presentation.reasons.append(isSilent ? .silent : .noText)
            return
        }
        guard let alert = resolver.alert(value) else { return presentation.reasons.append(.badAlert) }
        guard !alert.isEmpty else { return presentation.reasons.append(.noText) }
        guard situation.settings.alerts else { return presentation.reasons.append(.alertsOff) }
        presentation.alert = alert
        let level = interruption(aps)
        presentation.interruption = level
        presentation.place = place(level, situation)
        presentation.style = situation.style
        if situation.style == .none, !situation.isLocked { presentation.reasons.append(.noStyle) }
        presentation.thread = aps["thread-id"]?.text
        presentation.category = aps["category"]?.text
        let category = presentation.category.flatMap { declaration(of: $0, situation) }
        presentation.actions = (category?.actions ?? []).prefix(NotificationCategory.maximumActions).map { action in
            var action = action
            action.title = resolver.title(action.title)
            return action
        }
        let words = DeviceWords(for: situation.languages)
        let title = value.members?["action-loc-key"]?.text.map { resolver.title($0) }
        let open = title ?? words[.view]
        presentation.opensWithOwnWord = title == nil
        if situation.isLocked { presentation.slider = open } else { presentation.buttons = [words[.close], open] }
        presentation.launchImage = launchImage(value.members?["launch-image"]?.text, situation)
        if let collapseID = notification.collapseID {
            presentation.replaces = situation.shown.last { $0.collapseID == collapseID }?.id
        }
    }

    /// The interruption level: from its key, else from the sound.
    private func interruption(_ aps: JSON.Object) -> String {
        let level = aps["interruption-level"]?.text
        if let level, ["passive", "active", "time-sensitive", "critical"].contains(level) { return level }
        return aps["sound"]?.members?["critical"]?.isOne == true ? "critical" : "active"
    }

    private func place(_ level: String, _ situation: DeviceSituation) -> Presentation.Place {
        if level == "passive" || (situation.isFocused && level == "active") { return .list }
        if situation.isLocked { return .lockScreen }
        return situation.style == .none ? .list : .banner
    }

    /// A category of the app: those that it registered replace those of its bundle.
    private func declaration(of identifier: String, _ situation: DeviceSituation) -> NotificationCategory? {
        guard let registered = situation.categories else { return bundle?.categories[identifier] }
        return registered.first { $0.identifier == identifier }
    }

    private func launchImage(_ name: String?, _ situation: DeviceSituation) -> Presentation.LaunchImage {
        if let image = name.flatMap({ bundle?.image($0) }) { return .named(image) }
        if situation.hasSnapshot { return .snapshot }
        return bundle?.launchImageFile.map { .informationFile($0) } ?? .standard
    }

    private func number(
        _ presentation: inout Presentation,
        _ aps: JSON.Object,
        _ situation: DeviceSituation
    ) {
        guard let value = aps["badge"], value != .null else { return }
        guard let badge = value.badge else { return presentation.reasons.append(.badBadge) }
        guard situation.settings.badges else { return presentation.reasons.append(.badgesOff) }
        presentation.badge = badge
    }

    private func play(
        _ presentation: inout Presentation,
        _ aps: JSON.Object,
        sound value: JSON?,
        in situation: DeviceSituation
    ) {
        var sound: Presentation.Sound
        switch value {
        case .string(let name): sound = Presentation.Sound(name: name)
        case .object(let members):
            sound = Presentation.Sound(name: members["name"]?.text ?? "default")
            if members["critical"]?.isOne == true {
                sound.isCritical = true
                let volume = members["volume"] ?? .null
                sound.volume = min(max(volume.double ?? 1, 0), 1)
                if volume != .null, volume.double != sound.volume { presentation.reasons.append(.badVolume) }
            }
        default: return
        }
        let level = interruption(aps)
        guard situation.settings.sounds else { return presentation.reasons.append(.soundsOff) }
        if !sound.isCritical {
            guard level != "passive" else { return presentation.reasons.append(.passive) }
            guard !situation.isMuted else { return presentation.reasons.append(.muted) }
            guard !situation.isFocused || level != "active" else { return presentation.reasons.append(.focused) }
        }
        if let bundle, sound.name != "default" {
            let file = bundle.sound(sound.name)
            if file == nil || file?.fault != nil {
                presentation.reasons.append(file == nil ? .noSuchSound : .unplayableSound)
                sound.name = "default"
            }
        }
        presentation.sound = sound
    }

    /// Wakes the app for a background run.
    private func wake(
        _ presentation: inout Presentation,
        _ aps: JSON.Object,
        _ situation: DeviceSituation
    ) {
        guard aps["content-available"]?.isOne == true else { return }
        guard bundle?.wakesInBackground ?? true else { return presentation.reasons.append(.noBackgroundMode) }
        guard situation.app != .endedByUser else { return presentation.reasons.append(.endedByUser) }
        presentation.backgroundSeconds = Self.runSeconds
    }

    private func runExtension(_ presentation: inout Presentation, _ aps: JSON.Object) {
        guard aps["mutable-content"]?.isOne == true else { return }
        if presentation.alert == nil {
            presentation.reasons.append(.nothingToChange)
        } else {
            presentation.extensionSeconds = Self.runSeconds
        }
    }

    /// Starts, updates or ends a Live Activity ("Starting and updating Live Activities with ActivityKit push
    /// notifications").
    private func changeActivity(
        _ presentation: inout Presentation,
        _ aps: JSON.Object,
        of notification: IncomingNotification,
        in situation: DeviceSituation
    ) {
        func date(_ key: String, _ reason: Presentation.Reason) -> Double? {
            guard let value = aps[key], value != .null else { return nil }
            if value.time == nil { presentation.reasons.append(reason) }
            return value.time
        }
        let content = aps["content-state"].flatMap { $0.members == nil ? nil : $0 }
        let timestamp = date("timestamp", .badTimestamp)
        var activity = Presentation.Activity(event: "", state: .active, contentState: content)
        switch aps["event"]?.text {
        case "start" where notification.isBroadcast: return presentation.reasons.append(.startByBroadcast)
        case "start":
            guard aps["attributes-type"]?.text != nil, aps["attributes"]?.members != nil, content != nil else {
                return presentation.reasons.append(.incompleteStart)
            }
            activity.event = "start"
            if let channel = aps["input-push-channel"], channel.text.flatMap({ ChannelID($0) }) == nil {
                presentation.reasons.append(.badChannel)
            }
        case let event? where event == "update" || event == "end":
            guard let shown = situation.activity else { return presentation.reasons.append(.noActivity) }
            if let timestamp, timestamp < shown.timestamp {
                return presentation.reasons.append(.olderThanShown)
            }
            activity.event = event
        default:
            return presentation.reasons.append(.badEvent)
        }
        if activity.event == "end" {
            // A past date removes it at once. Without a date it stays for hours, so that the user can read the result.
            let date = date("dismissal-date", .badDismissalDate) ?? situation.now + Self.activitySeconds
            activity.dismissalDate = min(date, situation.now + Self.activitySeconds)
            activity.state = date <= situation.now ? .dismissed : .ended
        } else {
            activity.staleDate = date("stale-date", .badStaleDate)
            if let date = activity.staleDate, date <= situation.now { activity.state = .stale }
        }
        presentation.activity = activity
        guard let alert = aps["alert"], alert != .null else { return }
        guard situation.app != .foreground || situation.isLocked else {
            return presentation.reasons.append(.foreground)
        }
        show(&presentation, aps, alert: alert, of: notification, in: situation)
        play(&presentation, aps, sound: alert.members?["sound"] ?? aps["sound"], in: situation)
    }
}
