import Foundation
import HeraldModel

extension Phone {
    /// What became of a notification.
    struct Reception: Hashable, Sendable {
        var orders: [PhoneOrder] = []
        /// What the user saw; nil where that is not decided yet, or was before.
        var record: SawRecord?
        /// Whether it came before.
        var isRepeated = false
    }

    /// A notification came.
    ///
    /// It may be acknowledged once the orders that concern files are carried out.
    mutating func receive(_ notification: ReceivedNotification, _ now: WallTime) -> Reception {
        let key = SeenNotifications.Key(notification)
        if let key, state.seen.contains(key) { return Reception(isRepeated: true) }
        if let key { state.seen.insert(key) }
        let arrival = PhoneState.Arrival(
            topic: notification.topic,
            apnsID: notification.id?.description,
            payload: Data(notification.payload),
            pushType: notification.pushType,
            collapseID: notification.collapseID,
            time: now.unixSeconds
        )
        guard let index = owner(of: notification.topic) else {
            note("a notification for \(notification.topic), which is not installed, is dropped", now)
            return Reception()
        }
        let app = state.apps[index]
        if app.information.programs.contains(.service),
            presentation(of: arrival, payload: notification.payload, index, now).extensionSeconds != nil,
            let order = run(.service, index, arrival, now)
        {
            return Reception(orders: [order])
        }
        return present(arrival, index, extension: nil, payload: notification.payload, now)
    }

    /// An app's service program has ended. - Parameter payload:
    ///
    /// What it made of the payload; nil to show the original.
    mutating func serviceEnded(
        _ number: Int,
        _ outcome: SawRecord.ExtensionOutcome,
        payload: [UInt8]?,
        _ now: WallTime
    ) -> Reception {
        guard let run = endRun(number), let arrival = run.arrival, let index = owner(of: arrival.topic) else {
            return Reception()
        }
        return present(arrival, index, extension: outcome, payload: payload ?? Array(arrival.payload), now)
    }

    func presentation(
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
        if let permission = app.permission {
            situation.settings = permission
        } else {
            situation.settings.alerts = false
            situation.settings.badges = false
            situation.settings.sounds = false
        }
        situation.shown = state.shown.filter { $0.app == app.topic }
            .map { ShownNotification(id: $0.view.id, collapseID: $0.arrival.collapseID) }
        situation.activity = activity(of: app.topic, payload: payload)
            .map { ShownActivity(timestamp: state.activities[$0].timestamp) }
        return Presenter(bundle: bundles[app.topic]).presentation(
            of: IncomingNotification(payload: payload, pushType: arrival.pushType, collapseID: arrival.collapseID),
            in: situation
        )
    }

    private mutating func present(
        _ arrival: PhoneState.Arrival,
        _ index: Int,
        extension outcome: SawRecord.ExtensionOutcome?,
        payload: [UInt8],
        _ now: WallTime
    ) -> Reception {
        let presentation = presentation(of: arrival, payload: payload, index, now)
        var record = record(of: arrival, presentation, index)
        record.extension = outcome
        var orders: [PhoneOrder] = []
        if let activity = presentation.activity {
            change(activity, presentation.alert, arrival, payload, index, now)
        } else if presentation.alert != nil {
            orders += show(presentation, arrival, index, &record)
        }
        if let badge = presentation.badge { state.apps[index].badge = badge }
        if let sound = presentation.sound { play(sound, arrival.topic, now) }
        for line in record.words { note("\(name(index)): \(line)", now) }
        orders += hand(arrival, presentation, index, now)
        return Reception(orders: [.record(record)] + orders, record: record)
    }

    private func record(of arrival: PhoneState.Arrival, _ shown: Presentation, _ index: Int) -> SawRecord {
        let app = state.apps[index]
        var record = SawRecord(
            apnsID: arrival.apnsID ?? "",
            topic: arrival.topic,
            received: WallTime(milliseconds: Int64(arrival.time * 1000)).rfc3339,
            state: app.state,
            badge: app.badge
        )
        record.pushType = arrival.pushType
        record.languages = state.languages
        record.locked = state.isLocked
        record.focus = state.isFocused
        record.muted = state.isMuted
        record.take(shown)
        if app.permission == nil { record.because.append("the user has not said yet what the app may do") }
        return record
    }

    private mutating func show(
        _ presentation: Presentation,
        _ arrival: PhoneState.Arrival,
        _ index: Int,
        _ record: inout SawRecord
    ) -> [PhoneOrder] {
        guard let alert = presentation.alert, let place = presentation.place else { return [] }
        var orders: [PhoneOrder] = []
        var view = PhoneSnapshot.Notification(
            id: "n\(number())",
            topic: arrival.topic,
            app: name(index),
            time: arrival.time,
            place: place
        )
        view.apnsID = arrival.apnsID
        view.title = alert.title
        view.subtitle = alert.subtitle
        view.body = alert.body
        view.language = presentation.language
        view.thread = presentation.thread
        view.interruption = presentation.interruption
        view.buttons = presentation.buttons
        view.slider = presentation.slider
        view.actions = presentation.actions
        record.replaces = nil
        if let id = presentation.replaces, let old = takeAway(id) {
            view.replaced = true
            record.replaces = old.arrival.apnsID
            if let oldID = old.arrival.apnsID, let id = arrival.apnsID {
                orders.append(.amend(oldID, .replaced(by: id)))
            }
        }
        if place == .banner { state.banner = view.id }
        let image = presentation.launchImage?.description
        let shown = PhoneState.Shown(view: view, app: state.apps[index].topic, arrival: arrival, launchImage: image)
        state.shown.insert(shown, at: 0)
        if state.shown.count > limits.notifications {
            if state.shown.last?.view.id == state.banner { state.banner = nil }
            state.shown.removeLast()
        }
        return orders
    }

    mutating func takeAway(_ id: String) -> PhoneState.Shown? {
        guard let index = state.shown.firstIndex(where: { $0.view.id == id }) else { return nil }
        if state.banner == id { state.banner = nil }
        return state.shown.remove(at: index)
    }

    private mutating func play(_ sound: Presentation.Sound, _ topic: Topic, _ now: WallTime) {
        var heard = PhoneSnapshot.Sound(id: "s\(number())", topic: topic, name: sound.name, time: now.unixSeconds)
        heard.critical = sound.isCritical
        heard.volume = sound.volume
        sounds.append(heard)
        if sounds.count > limits.sounds { sounds.removeFirst(sounds.count - limits.sounds) }
    }

    /// Gives the app what is the app's: the payload in the foreground, a run in the background, and news to its program.
    private mutating func hand(
        _ arrival: PhoneState.Arrival,
        _ presentation: Presentation,
        _ index: Int,
        _ now: WallTime
    ) -> [PhoneOrder] {
        guard !presentation.reasons.contains(.unreadable), presentation.activity == nil,
            arrival.pushType != .liveactivity
        else { return [] }
        var orders: [PhoneOrder] = []
        if presentation.isDeliveredToApp {
            let app = state.apps[index].topic
            if state.foreground == app { received[app] = arrival }
            orders.append(tell(.foreground, arrival, index))
        }
        if presentation.backgroundSeconds != nil { orders += wake(arrival, index, now) }
        if presentation.reasons.contains(.endedByUser) { state.apps[index].held = arrival }
        // An app that the user ended is not started, and a silent notification is for the background alone.
        let isSilent = presentation.reasons.contains(.silent) && !presentation.isDeliveredToApp
        if !isSilent, state.apps[index].state != .endedByUser, let order = run(.receive, index, arrival, now) {
            orders.append(order)
        }
        return orders
    }

    /// Wakes an app for a silent notification.
    mutating func wake(_ arrival: PhoneState.Arrival, _ index: Int, _ now: WallTime) -> [PhoneOrder] {
        let topic = state.apps[index].topic
        var orders: [PhoneOrder] = []
        if let order = run(.background, index, arrival, now) {
            orders.append(order)
        } else if present.contains(topic), state.runs.count < limits.runs {
            var run = makeRun(.background, index, arrival)
            run.deadline = now.unixSeconds + limits.backgroundSeconds
            state.runs.append(run)
        }
        if present.contains(topic) { orders.append(tell(.background, arrival, index)) }
        if state.apps[index].state != .foreground { state.apps[index].state = .background }
        return orders
    }

    func tell(
        _ cause: AppNews.Cause,
        _ arrival: PhoneState.Arrival,
        _ index: Int,
        action: String? = nil,
        text: String? = nil
    ) -> PhoneOrder {
        let app = state.apps[index]
        let incoming = IncomingForApp(
            topic: arrival.topic,
            apnsID: arrival.apnsID,
            payload: Array(arrival.payload),
            cause: cause,
            state: app.state,
            action: action,
            text: text
        )
        return .tell(app.topic, .notification(incoming))
    }
}
