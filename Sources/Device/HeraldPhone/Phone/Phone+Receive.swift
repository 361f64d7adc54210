import Foundation
import HeraldDevice
import HeraldJSON
import HeraldModel

/// Notifications that arrive, and the app runs that they start.
extension Phone {
    /// The outcome of a notification.
    struct Reception: Hashable, Sendable {
        var effects: [PhoneEffect] = []
        /// The display record; nil while a service program may change the notification, and for a duplicate.
        var record: DisplayRecord?
        /// Whether the notification is a duplicate.
        var isRepeated = false
    }

    /// Takes a notification; it may be acknowledged once the effects on files are performed.
    mutating func receive(_ notification: ReceivedNotification, _ now: WallTime) -> Reception {
        let key = SeenNotifications.Key(notification)
        if noteBroadcast(notification) { return Reception(isRepeated: true) }
        if let key, state.seen.contains(key) { return Reception(isRepeated: true) }
        if let key { state.seen.insert(key) }
        let arrival = arrival(of: notification, now)
        guard let index = owner(of: notification.topic) else {
            note("a notification for \(notification.topic), which is not installed, was dropped", now)
            return Reception()
        }
        if state.apps[index].information.programs.contains(.service),
            presentation(of: arrival, payload: notification.payload, index, now).extensionSeconds != nil
        {
            let effects = run(.service, of: index, arrival, now)
            if !effects.isEmpty { return Reception(effects: effects) }
        }
        return present(arrival, index, extension: nil, payload: notification.payload, now)
    }

    /// Records a notification that the device cannot handle, and does nothing else.
    mutating func skip(_ notification: ReceivedNotification, _ reason: String, _ now: WallTime) -> Reception {
        note("a notification for \(notification.topic) was skipped: \(reason)", now)
        guard let index = owner(of: notification.topic) else { return Reception() }
        let record = record(of: arrival(of: notification, now), Presentation(), index, because: reason)
        return Reception(effects: [.record(record)], record: record)
    }

    private func arrival(of notification: ReceivedNotification, _ now: WallTime) -> PhoneState.Arrival {
        PhoneState.Arrival(
            topic: notification.topic,
            channel: notification.channel,
            apnsID: notification.id?.description,
            payload: Data(notification.payload),
            pushType: notification.pushType,
            collapseID: notification.collapseID,
            time: now.unixSeconds,
            priority: notification.priority
        )
    }

    /// Ends the run of a service program, and shows its payload, or the original if that is nil.
    ///
    /// Later notifications wait for it, so that the newest of an app is shown last.
    /// - Returns: What is shown: nothing while an earlier run of the app goes on, else also what has waited for this one.
    mutating func serviceEnded(
        _ number: Int,
        _ outcome: DisplayRecord.ExtensionOutcome,
        payload: [UInt8]?,
        _ now: WallTime
    ) -> [Reception] {
        guard let app = state.runs.first(where: { $0.number == number })?.app else { return [] }
        endedServices[number] = (outcome, payload)
        var receptions: [Reception] = []
        while let run = state.runs.first(where: { $0.app == app && $0.event == .service }),
            let (outcome, payload) = endedServices.removeValue(forKey: run.number)
        {
            _ = endRun(run.number)
            guard let arrival = run.arrival, let index = owner(of: arrival.topic) else { continue }
            let payload = payload ?? Array(arrival.payload)
            receptions.append(present(arrival, index, extension: outcome, payload: payload, now))
        }
        return receptions
    }

    private func presentation(
        of arrival: PhoneState.Arrival,
        payload: [UInt8],
        _ index: Int,
        _ now: WallTime
    ) -> Presentation {
        let app = state.apps[index]
        var situation = DeviceSituation(now: now.unixSeconds)
        situation.app = app.state
        situation.isLocked = state.isLocked
        situation.languages = state.languages
        situation.isFocused = state.isFocused
        situation.isMuted = state.isMuted
        situation.hasSnapshot = app.hasSnapshot
        situation.settings = app.permission ?? NotificationSettings([])
        situation.style = app.style
        situation.categories = app.categories
        situation.shown = state.notifications.all.filter { $0.app == app.topic }
            .map { ShownNotification(id: $0.view.id, collapseID: $0.arrival.collapseID) }
        situation.activity = state.activities.timestamp(of: app.topic, payload: payload, channel: arrival.channel)
            .map { ShownActivity(timestamp: $0) }
        var incoming = IncomingNotification(
            payload: payload,
            pushType: arrival.pushType,
            collapseID: arrival.collapseID
        )
        incoming.isBroadcast = arrival.channel != nil
        return Presenter(bundle: bundles[app.topic]).presentation(of: incoming, in: situation)
    }

    /// Shows a notification, and delivers it to its app.
    mutating func present(
        _ arrival: PhoneState.Arrival,
        _ index: Int,
        extension outcome: DisplayRecord.ExtensionOutcome?,
        payload: [UInt8],
        _ now: WallTime
    ) -> Reception {
        let presentation = presentation(of: arrival, payload: payload, index, now)
        var record = record(of: arrival, presentation, index)
        record.extension = outcome
        var effects: [PhoneEffect] = []
        if presentation.activity != nil {
            let (id, appName) = ("a\(nextNumber())", name(index))
            state.activities.apply(
                presentation,
                app: state.apps[index].topic,
                payload: payload,
                channel: arrival.channel,
                now: now.unixSeconds,
                limit: limits.activities
            ) { content, attributes in
                PhoneSnapshot.Activity(
                    id: id,
                    topic: arrival.topic,
                    app: appName,
                    content: content,
                    attributes: attributes
                )
            }
            if presentation.activity?.event == "start",
                let channel = state.activities.newestChannel(of: state.apps[index].topic)
            {
                effects += subscribe(activityTo: channel)
                if state.channels.firstIndex(of: channel) == nil {
                    record.because.append("its channel is left out: the device has \(limits.channels) subscriptions")
                }
            }
            effects += endUnusedChannels()
        } else if let place = presentation.place {
            effects += show(presentation, at: place, arrival, index, in: &record, at: now)
        }
        if let badge = presentation.badge { state.apps[index].badge = badge }
        if let sound = presentation.sound { play(sound, arrival.topic, now) }
        let delivery = deliver(arrival, as: presentation, toApp: index, now)
        effects += delivery.effects
        if presentation.backgroundSeconds != nil, !delivery.runsInBackground {
            record.backgroundLaunch = false
            record.because.append(Self.nothingToRun)
        }
        return Reception(effects: [.record(record)] + effects, record: record)
    }

    private func record(
        of arrival: PhoneState.Arrival,
        _ shown: Presentation,
        _ index: Int,
        because reason: String? = nil
    ) -> DisplayRecord {
        let app = state.apps[index]
        var record = DisplayRecord(
            apnsID: arrival.apnsID ?? "",
            topic: arrival.topic,
            received: WallTime(unixSeconds: arrival.time).rfc3339,
            state: app.state,
            badge: app.badge
        )
        record.channel = arrival.channel
        record.local = arrival.local
        record.due = arrival.due.map { WallTime(unixSeconds: $0).rfc3339 }
        record.pushType = arrival.pushType
        record.priority = arrival.priority
        record.payload = String(decoding: arrival.payload, as: UTF8.self)
        record.languages = state.languages
        record.locked = state.isLocked
        record.focus = state.isFocused
        record.muted = state.isMuted
        record.take(shown)
        if let reason { record.because.append("the device cannot handle it: \(reason)") }
        if app.permission == nil { record.because.append("the user has not answered the app's permission request") }
        return record
    }

    /// Puts a notification on the screen, in place of the one that it replaces.
    private mutating func show(
        _ presentation: Presentation,
        at place: Presentation.Place,
        _ arrival: PhoneState.Arrival,
        _ index: Int,
        in record: inout DisplayRecord,
        at now: WallTime
    ) -> [PhoneEffect] {
        var effects: [PhoneEffect] = []
        var view = PhoneSnapshot.Notification(
            id: "n\(nextNumber())",
            topic: arrival.topic,
            app: name(index),
            time: arrival.time,
            place: place
        )
        view.apnsID = arrival.apnsID
        view.local = arrival.local
        view.title = presentation.alert?.title
        view.subtitle = presentation.alert?.subtitle
        view.body = presentation.alert?.body
        view.language = presentation.language
        view.style = presentation.style ?? .banner
        view.thread = presentation.thread
        view.interruption = presentation.interruption
        view.buttons = presentation.buttons
        view.slider = presentation.slider
        view.actions = presentation.actions
        if let old = presentation.replaces.flatMap({ state.notifications.remove($0) }) {
            view.replaced = true
            record.replaces = old.arrival.id
            // After the clock was set back, the same moment comes again: both have one record.
            if let oldID = old.arrival.recordID, oldID != arrival.recordID, let id = arrival.id {
                effects.append(.amend(oldID, .replaced(by: id)))
            }
        }
        let image = presentation.launchImage?.description
        let shown = PhoneState.Shown(
            view: view,
            app: state.apps[index].topic,
            arrival: arrival,
            launchImage: image,
            opensWithOwnWord: presentation.opensWithOwnWord
        )
        state.notifications.insert(
            shown,
            now: now.unixSeconds,
            bannerSeconds: limits.bannerSeconds,
            limit: limits.notifications
        )
        return effects
    }

    /// The reason why an app was not woken, in words.
    static let nothingToRun =
        "the app is not woken: it is not on the local socket, and no program background of its bundle could start"

    /// Delivers to the app: the payload in the foreground, a background run, and the run of its `receive` program.
    /// - Returns: The effects, and whether something of the app runs in the background.
    private mutating func deliver(
        _ arrival: PhoneState.Arrival,
        as presentation: Presentation,
        toApp index: Int,
        _ now: WallTime
    ) -> (effects: [PhoneEffect], runsInBackground: Bool) {
        guard !presentation.reasons.contains(where: { $0 == .unreadable || $0 == .tooDeep }) else { return ([], false) }
        // An app that runs sees how its Live Activity changes.
        if arrival.channel != nil { return ([message(.broadcast, arrival, index)], false) }
        guard presentation.activity == nil, arrival.pushType != .liveactivity else { return ([], false) }
        var effects: [PhoneEffect] = []
        if presentation.isDeliveredToApp {
            let app = state.apps[index].topic
            if state.foreground == app { received[app] = arrival }
            effects.append(message(.foreground, arrival, index))
        }
        let woken = presentation.backgroundSeconds == nil ? [] : wake(arrival, index, now)
        effects += woken
        if presentation.reasons.contains(.endedByUser) { state.apps[index].held = arrival }
        // A silent notification only starts a background run. Others start an app that is not open only if its bundle has
        // the background mode, and the user has not ended it.
        let isSilent = presentation.reasons.contains(.silent) && !presentation.isDeliveredToApp
        let mayStart = presentation.isDeliveredToApp || wakesInBackground(state.apps[index].topic)
        if !isSilent, mayStart, state.apps[index].state != .endedByUser {
            effects += run(.receive, of: index, arrival, now)
        }
        return (effects, !woken.isEmpty)
    }

    /// Wakes an app for a silent notification; no effect if nothing of it can run.
    mutating func wake(_ arrival: PhoneState.Arrival, _ index: Int, _ now: WallTime) -> [PhoneEffect] {
        let topic = state.apps[index].topic
        var effects = run(.background, of: index, arrival, now)
        if connectedApps.contains(topic) {
            if effects.isEmpty, state.runs.count < limits.runs {
                var run = makeRun(.background, index, arrival)
                run.deadline = now.unixSeconds + limits.backgroundSeconds
                state.runs.append(run)
            }
            effects.append(message(.background, arrival, index))
        }
        if !effects.isEmpty, state.apps[index].state != .foreground { state.apps[index].state = .background }
        return effects
    }

    /// The message that tells an app on the local socket about a notification.
    func message(
        _ cause: LocalApp.Cause,
        _ arrival: PhoneState.Arrival,
        _ index: Int,
        action: String? = nil,
        text: String? = nil
    ) -> PhoneEffect {
        let app = state.apps[index]
        let notification = AppNotification(
            arrival: arrival,
            cause: cause,
            state: app.state,
            action: action,
            text: text
        )
        return .notifyApp(app.topic, .notification(notification))
    }

    // MARK: - Runs of programs

    /// Runs a program of the app; no effect if the app has none for the event, or too many run.
    mutating func run(
        _ event: ProgramEvent,
        of index: Int,
        _ arrival: PhoneState.Arrival?,
        action: String? = nil,
        text: String? = nil,
        news: JSON.Object? = nil,
        _ now: WallTime
    ) -> [PhoneEffect] {
        guard state.apps[index].information.programs.contains(event) else { return [] }
        guard state.runs.count < limits.runs else {
            note("\(name(index)): its program \(event.rawValue) does not run: too many run or wait already", now)
            return []
        }
        var run = makeRun(event, index, arrival)
        run.action = action
        run.text = text
        run.news = news
        state.runs.append(run)
        return [.run(run)]
    }

    private mutating func makeRun(_ event: ProgramEvent, _ index: Int, _ arrival: PhoneState.Arrival?) -> PhoneRun {
        let app = state.apps[index]
        return PhoneRun(
            number: nextNumber(),
            app: app.topic,
            event: event,
            arrival: arrival,
            state: app.state,
            language: bundles[app.topic]?.language(for: state.languages) ?? state.languages.first
        )
    }

    private mutating func endRun(_ number: Int) -> PhoneRun? {
        guard let index = state.runs.firstIndex(where: { $0.number == number }) else { return nil }
        return state.runs.remove(at: index)
    }

    /// Ends the run of a program, or of an app on the local socket; not of a service program.
    mutating func runEnded(
        _ number: Int,
        _ outcome: DisplayRecord.BackgroundOutcome,
        _ now: WallTime,
        words: String? = nil
    ) -> [PhoneEffect] {
        guard let run = endRun(number) else { return [] }
        let name = state.apps.first { $0.topic == run.app }?.information.name ?? run.app.name
        if let words { note("\(name): its program \(run.event.rawValue) \(words)", now) }
        guard run.event == .background, let id = run.arrival?.apnsID else { return [] }
        note("\(name) ran in the background: \(outcome.rawValue)", now)
        return [.amend(id, .ranInBackground(outcome))]
    }

    /// Ends the background run of an app on the local socket.
    /// - Throws: ``DeviceError/Code/notPossible`` if there is no such run.
    mutating func done(
        _ topic: Topic,
        apnsID: String,
        _ outcome: DisplayRecord.BackgroundOutcome,
        _ now: WallTime
    ) throws -> [PhoneEffect] {
        let run = state.runs.first { $0.deadline != nil && $0.app == topic && $0.arrival?.apnsID == apnsID }
        guard let run else {
            throw DeviceError(.notPossible, "\(topic) is not working on \(apnsID), or its time is up")
        }
        return runEnded(run.number, outcome, now)
    }
}
