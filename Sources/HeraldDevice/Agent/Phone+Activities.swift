import HeraldModel

extension Phone {
    /// The Live Activity that a payload is about: the one with the attributes that it names, else the app's newest.
    func activity(of app: Topic, payload: [UInt8]) -> Int? {
        guard case .object(let members, _) = PayloadReader.read(payload), let aps = members["aps"]?.members else {
            return nil
        }
        return state.activities.firstIndex { activity in
            activity.app == app && (aps["attributes"] == nil || activity.view.attributes == aps["attributes"])
        }
    }

    /// Starts, updates or ends a Live Activity.
    mutating func change(
        _ change: Presentation.Activity,
        _ alert: Presentation.Alert?,
        _ arrival: PhoneState.Arrival,
        _ payload: [UInt8],
        _ index: Int,
        _ now: WallTime
    ) {
        guard case .object(let members, _) = PayloadReader.read(payload), let aps = members["aps"]?.members else {
            return
        }
        let app = state.apps[index].topic
        let existing = activity(of: app, payload: payload)
        var activity: PhoneState.Activity
        if change.event == "start" {
            let view = PhoneSnapshot.Activity(
                id: "a\(number())",
                topic: arrival.topic,
                app: name(index),
                content: change.content ?? .object([:]),
                attributes: aps["attributes"] ?? .object([:])
            )
            activity = PhoneState.Activity(view: view, app: app, timestamp: 0)
        } else if let existing {
            activity = state.activities[existing]
        } else {
            return
        }
        if let existing { state.activities.remove(at: existing) }
        guard change.state != .dismissed else { return }
        activity.timestamp = aps["timestamp"]?.double ?? now.unixSeconds
        activity.view.state = change.state
        activity.view.content = change.content ?? activity.view.content
        activity.view.title = alert?.title ?? activity.view.title
        activity.view.body = alert?.body ?? activity.view.body
        activity.view.staleDate = change.staleDate
        activity.view.dismissalDate = change.dismissalDate
        state.activities.insert(activity, at: 0)
        if state.activities.count > limits.activities { state.activities.removeLast() }
    }
}
