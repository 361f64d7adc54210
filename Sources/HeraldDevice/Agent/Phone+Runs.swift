import HeraldModel

extension Phone {
    /// Has a program of the app run, if it has one for that.
    mutating func run(
        _ event: ProgramEvent,
        _ index: Int,
        _ arrival: PhoneState.Arrival?,
        _ now: WallTime,
        action: String? = nil,
        text: String? = nil
    ) -> PhoneOrder? {
        guard state.apps[index].information.programs.contains(event) else { return nil }
        guard state.runs.count < limits.runs else {
            note("\(name(index)): its program \(event.rawValue) does not run: too many are running or waiting", now)
            return nil
        }
        var run = makeRun(event, index, arrival)
        run.action = action
        run.text = text
        state.runs.append(run)
        return .run(run)
    }

    mutating func makeRun(_ event: ProgramEvent, _ index: Int, _ arrival: PhoneState.Arrival?) -> PhoneRun {
        let app = state.apps[index]
        return PhoneRun(
            number: number(),
            app: app.topic,
            event: event,
            arrival: arrival,
            state: app.state,
            language: bundles[app.topic]?.language(for: state.languages) ?? state.languages.first
        )
    }

    mutating func endRun(_ number: Int) -> PhoneRun? {
        guard let index = state.runs.firstIndex(where: { $0.number == number }) else { return nil }
        return state.runs.remove(at: index)
    }

    /// A program has ended, or an app has said that it is done; not for service programs.
    mutating func runEnded(
        _ number: Int,
        _ outcome: SawRecord.BackgroundOutcome,
        _ now: WallTime,
        words: String? = nil
    ) -> [PhoneOrder] {
        guard let run = endRun(number) else { return [] }
        let name = state.apps.first { $0.topic == run.app }?.information.name ?? run.app.name
        if let words { note("\(name): its program \(run.event.rawValue) \(words)", now) }
        guard run.event == .background, let id = run.arrival?.apnsID else { return [] }
        note("\(name) ran in the background: \(outcome.rawValue)", now)
        return [.amend(id, .ranInBackground(outcome))]
    }

    /// An app on the socket has done what a silent notification woke it for.
    /// - Throws: ``DeviceError/Code/notPossible`` if it was not woken for that.
    mutating func done(
        _ topic: Topic,
        apnsID: String,
        _ outcome: SawRecord.BackgroundOutcome,
        _ now: WallTime
    ) throws -> [PhoneOrder] {
        let run = state.runs.first { $0.deadline != nil && $0.app == topic && $0.arrival?.apnsID == apnsID }
        guard let run else {
            throw DeviceError(.notPossible, "\(topic) is not working on \(apnsID), or its time was up")
        }
        return runEnded(run.number, outcome, now)
    }
}
