import HeraldModel

/// The user's permission for an app, and its consequences at the service.
extension Phone {
    /// Sets an app's permission and alert style; an app is registered only once it has a permission, so that nothing sent
    /// to it is lost.
    mutating func permit(
        _ index: Int,
        _ kinds: Set<NotificationKind>,
        style: AlertStyle? = nil,
        _ now: WallTime
    ) -> [PhoneEffect] {
        let topic = state.apps[index].topic
        if let style, style != state.apps[index].style {
            state.apps[index].style = style
            note("\(name(index)): alert style \(style.rawValue)", now)
        }
        let isFirst = state.apps[index].permission == nil
        let granted = state.apps[index].information.wants.filter(kinds.contains)
        let settings = NotificationSettings(granted)
        guard state.apps[index].permission != settings else { return [] }
        let wasEnabled = isEnabled(state.apps[index])
        state.apps[index].permission = settings
        let words = granted.isEmpty ? "nothing" : granted.map { "\($0.rawValue)s" }.joined(separator: ", ")
        note("\(name(index)) may use: \(words)", now)
        if !settings.badges { state.apps[index].badge = 0 }
        let message = tell(index, isFirst ? .permission(topic, granted) : .settings(topic, granted), now)
        if isFirst { return registration(of: index) + message }
        return (isEnabled(state.apps[index]) == wasEnabled ? [] : [tellSetting(index)]) + message
    }

    /// Whether the service delivers an app's notifications: the user allows something, or silent ones wake the app.
    func isEnabled(_ app: PhoneState.App) -> Bool {
        guard let permission = app.permission, permission.kinds.isEmpty else { return true }
        return wakesInBackground(app.topic)
    }

    /// Whether notifications may start an app: its bundle has the background mode, or it has no bundle.
    func wakesInBackground(_ app: Topic) -> Bool {
        bundles[app]?.wakesInBackground ?? true
    }
}
