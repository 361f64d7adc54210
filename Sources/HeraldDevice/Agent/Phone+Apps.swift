import HeraldModel

extension Phone {
    /// An app is installed, or takes the place of the one with its identifier, which keeps permission, token and number.
    ///
    /// `allow` is what the user allows it, if they said so beforehand. Throws ``DeviceError/Code/notPossible`` if there are
    /// too many.
    mutating func install(
        _ information: AppInformation,
        _ bundle: AppBundle?,
        allow: Set<NotificationKind>?,
        _ now: WallTime
    ) throws -> [PhoneOrder] {
        let topic = information.topic
        bundles[topic] = bundle
        state.deletions.removeAll { $0 == topic }
        var orders: [PhoneOrder] = []
        if let index = state.apps.firstIndex(where: { $0.topic == topic }) {
            let former = state.apps[index].information
            let hasMoved = former.environment != information.environment
            // Of an app that goes to the other environment, the registration that it had would outlive it.
            orders += unregister(former.topics.filter { hasMoved || !information.topics.contains($0) }, index)
            if hasMoved { state.apps[index].isEnabledAtService = true }
            if state.apps[index].information != information { note("\(information.name) was replaced", now) }
            state.apps[index].information = information
            if state.apps[index].permission != nil { orders += register(state.apps[index]) }
        } else {
            guard state.apps.count < limits.apps else {
                bundles[topic] = nil
                throw DeviceError(
                    .notPossible,
                    "there are \(limits.apps) apps on this device already: remove one first"
                )
            }
            var app = PhoneState.App(information: information)
            app.number = number()
            state.apps.append(app)
            note("\(information.name) was installed", now)
        }
        if let allow, let index = state.apps.firstIndex(where: { $0.topic == topic }),
            state.apps[index].permission == nil
        {
            orders += permit(index, allow, now)
        }
        return orders
    }

    /// The user says what an app may do; before that it is not registered, so that nothing can come for it.
    mutating func permit(_ index: Int, _ kinds: Set<NotificationKind>, _ now: WallTime) -> [PhoneOrder] {
        let topic = state.apps[index].topic
        let isFirst = state.apps[index].permission == nil
        let granted = state.apps[index].information.wants.filter(kinds.contains)
        var settings = NotificationSettings()
        settings.alerts = granted.contains(.alert)
        settings.badges = granted.contains(.badge)
        settings.sounds = granted.contains(.sound)
        guard state.apps[index].permission != settings else { return [] }
        let wasEnabled = state.apps[index].isEnabled
        state.apps[index].permission = settings
        let words = granted.isEmpty ? "nothing" : granted.map { "\($0.rawValue)s" }.joined(separator: ", ")
        note("\(name(index)) may use: \(words)", now)
        if !settings.badges { state.apps[index].badge = 0 }
        let news = PhoneOrder.tell(topic, isFirst ? .permission(topic, granted) : .settings(topic, granted))
        if isFirst { return register(state.apps[index]) + [news] }
        let isEnabled = state.apps[index].isEnabled
        return (isEnabled == wasEnabled ? [] : [.setEnabled(isEnabled, for: topic)]) + [news]
    }

    mutating func remove(_ index: Int, _ now: WallTime) -> [PhoneOrder] {
        let app = state.apps[index]
        let topic = app.topic
        note("\(name(index)) was removed", now)
        var orders: [PhoneOrder] = [.endPrograms(topic), .tell(topic, .refused(topic, "the app was removed"))]
        orders += unregister(app.information.topics, index)
        state.apps.remove(at: index)
        bundles[topic] = nil
        if state.foreground == topic { state.foreground = nil }
        received[topic] = nil
        state.shown.removeAll { $0.app == topic }
        if let banner = state.banner, !state.shown.contains(where: { $0.view.id == banner }) { state.banner = nil }
        state.activities.removeAll { $0.app == topic }
        state.runs.removeAll { $0.app == topic }
        if app.information.hasBundle {
            state.deletions.append(topic)
            orders.append(.deleteFiles(topic))
        }
        return orders
    }

    /// The files of a removed app are gone.
    mutating func deleted(_ topic: Topic) {
        state.deletions.removeAll { $0 == topic }
    }

    /// Ends the registration of topics; an app that nobody was asked about has none.
    private mutating func unregister(_ topics: [Topic], _ index: Int) -> [PhoneOrder] {
        guard state.apps[index].permission != nil else { return [] }
        let environment = state.apps[index].information.environment
        return topics.map { topic in
            state.apps[index].tokens[topic.name] = nil
            state.removals.removeAll { $0.topic == topic }
            state.removals.append(PhoneState.Removal(topic: topic, environment: environment))
            return .unregister(topic, in: environment)
        }
    }

    // Apps on the local socket.

    /// An app says that it is there; one that is not installed is, as one without a bundle.
    ///
    /// `wants` is what it asks the user for. Throws ``DeviceError/Code/notPossible`` if there are too many.
    mutating func appeared(_ topic: Topic, wants: [NotificationKind]?, _ now: WallTime) throws -> [PhoneOrder] {
        var orders: [PhoneOrder] = []
        if !state.apps.contains(where: { $0.topic == topic }) {
            var information = AppInformation(topic: topic)
            information.wants = wants ?? information.wants
            orders += try install(information, nil, allow: nil, now)
        }
        let index = try app(topic)
        present.insert(topic)
        if state.apps[index].state == .notRunning || state.apps[index].state == .endedByUser {
            state.apps[index].state = .background
        }
        let app = state.apps[index]
        if let permission = app.permission {
            orders.append(.tell(topic, .permission(topic, permission.kinds)))
        }
        for (name, token) in app.tokens.sorted(by: { $0.key < $1.key }) {
            if let topic = Topic(name) { orders.append(.tell(app.topic, .token(topic, token))) }
        }
        if let reason = app.refused { orders.append(.tell(topic, .refused(topic, reason))) }
        if let held = app.held {
            state.apps[index].held = nil
            orders += wake(held, index, now)
        }
        return orders
    }

    /// An app on the socket says where it is.
    mutating func moved(_ topic: Topic, to appState: AppState, _ now: WallTime) throws {
        let index = try app(topic)
        switch appState {
        case .foreground:
            if state.foreground != topic { leave() }
            state.foreground = topic
            state.apps[index].state = .foreground
        case .background, .notRunning, .endedByUser:
            if state.foreground == topic { leave() }
            state.apps[index].state = appState
        }
    }

    /// An app has left the socket.
    mutating func left(_ topic: Topic, _ now: WallTime) -> [PhoneOrder] {
        present.remove(topic)
        guard let index = state.apps.firstIndex(where: { $0.topic == topic }) else { return [] }
        if state.apps[index].state != .endedByUser {
            if state.foreground == topic { leave() }
            state.apps[index].state = .notRunning
        }
        let unfinished = state.runs.filter { $0.app == topic && $0.deadline != nil }
        return unfinished.flatMap { runEnded($0.number, .failed, now) }
    }
}

extension NotificationSettings {
    /// What is on.
    var kinds: [NotificationKind] {
        NotificationKind.allCases.filter { kind in
            switch kind {
            case .alert: alerts
            case .badge: badges
            case .sound: sounds
            }
        }
    }
}
