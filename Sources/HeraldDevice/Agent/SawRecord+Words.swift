extension SawRecord {
    /// Takes over what was presented.
    mutating func take(_ presentation: Presentation) {
        language = presentation.language
        shown = presentation.isShown
        place = presentation.place
        title = presentation.alert?.title
        subtitle = presentation.alert?.subtitle
        body = presentation.alert?.body
        buttons = presentation.buttons
        slider = presentation.slider
        actions = presentation.actions
        badge.after = presentation.badge ?? badge.before
        sound = presentation.sound?.name
        critical = presentation.sound?.isCritical ?? false
        volume = presentation.sound?.volume
        launchImage = presentation.launchImage?.description
        backgroundLaunch = presentation.backgroundSeconds != nil
        deliveredToApp = presentation.isDeliveredToApp
        thread = presentation.thread
        category = presentation.category
        interruption = presentation.interruption
        activity = presentation.activity
        because = presentation.reasons.map(\.rawValue)
    }

    /// What the user saw, in words, one thing a line: `shown on the lock screen: Game Request: Bob wants to play`.
    public var words: [String] {
        var lines: [String] = []
        let text = [title, subtitle, body].compactMap { $0 }.filter { !$0.isEmpty }.joined(separator: ": ")
        switch place {
        case .banner?: lines.append("shown as a banner: \(text)")
        case .lockScreen?: lines.append("shown on the lock screen: \(text)")
        case .list?: lines.append("shown in the list of notifications: \(text)")
        case nil:
            if let activity {
                lines.append("its Live Activity: \(activity.event), now \(activity.state.rawValue)")
            } else if deliveredToApp {
                lines.append("handed to the app; nothing is shown")
            } else {
                lines.append("nothing is shown")
            }
        }
        if badge.after != badge.before {
            lines.append(badge.after == 0 ? "the badge goes" : "the badge is \(badge.after)")
        }
        if let sound { lines.append("the sound is \(sound)") }
        if backgroundLaunch { lines.append("the app runs in the background") }
        switch `extension` {
        case .changed?: lines.append("changed by the app's service program")
        case .failed?: lines.append("the app's service program failed: the original is shown")
        case .timedOut?: lines.append("the app's service program took too long: the original is shown")
        case nil: break
        }
        return lines + because.map { "because \($0)" }
    }
}
