extension Presenter {
    /// Starts, updates or ends a Live Activity ("Starting and updating Live Activities with ActivityKit push
    /// notifications").
    func changeActivity(
        _ presentation: inout Presentation,
        _ aps: [String: PayloadValue],
        _ notification: IncomingNotification,
        _ situation: DeviceSituation
    ) {
        let content = aps["content-state"].flatMap { $0.members == nil ? nil : $0 }
        var activity = Presentation.Activity(event: "", state: .active, content: content)
        switch aps["event"]?.text {
        case "start":
            guard aps["attributes-type"]?.text != nil, aps["attributes"]?.members != nil, content != nil else {
                return presentation.reasons.append(.incompleteStart)
            }
            activity.event = "start"
        case let event? where event == "update" || event == "end":
            guard let shown = situation.activity else { return presentation.reasons.append(.noActivity) }
            if let timestamp = aps["timestamp"]?.double, timestamp < shown.timestamp {
                return presentation.reasons.append(.olderThanShown)
            }
            activity.event = event
        default:
            return presentation.reasons.append(.badEvent)
        }
        if activity.event == "end" {
            // A date that has passed removes it at once; without one it stays for hours, for the user to read the end.
            let date = aps["dismissal-date"]?.double ?? situation.now + Self.activitySeconds
            activity.dismissalDate = min(date, situation.now + Self.activitySeconds)
            activity.state = date <= situation.now ? .dismissed : .ended
        } else {
            activity.staleDate = aps["stale-date"]?.double
            if let date = activity.staleDate, date <= situation.now { activity.state = .stale }
        }
        presentation.activity = activity
        guard let alert = aps["alert"], alert != .null else { return }
        guard situation.app != .foreground || situation.isLocked else {
            return presentation.reasons.append(.foreground)
        }
        show(&presentation, aps, alert, notification, situation)
        sound(&presentation, aps, alert.members?["sound"] ?? aps["sound"], situation)
    }
}
