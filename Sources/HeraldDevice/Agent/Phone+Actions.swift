import Foundation
import HeraldModel

extension Phone {
    /// The user does something; all but `install`, which begins with files.
    /// - Throws: ``DeviceError/Code/notPossible``; then nothing has changed.
    mutating func perform(_ action: PhoneAction, _ now: WallTime) throws -> [PhoneOrder] {
        switch action {
        case .lock:
            state.isLocked = true
            state.banner = nil
            note("locked", now)
            return []
        case .unlock:
            state.isLocked = false
            note("unlocked", now)
            return []
        case .home:
            if state.isLocked { throw DeviceError(.notPossible, "the screen is locked: unlock it first") }
            leave()
            return []
        case .open(let topic):
            let index = try app(topic)
            return open(index, with: nil, now)
        case .end(let topic): return end(try app(topic), now)
        case .tap(let id): return try tap(id, now)
        case .close(let id):
            let shown = try shown(id)
            _ = takeAway(id)
            note("closed a notification of \(shown.view.app)", now)
            return answer(shown, .closed)
        case .clear:
            let closed = state.shown
            state.shown = []
            state.banner = nil
            if !closed.isEmpty { note("cleared all notifications", now) }
            return closed.flatMap { answer($0, .closed) }
        case .act(let id, let action, let text): return try act(id, action, text, now)
        case .permit(let topic, let kinds): return permit(try app(topic), kinds, now)
        case .set(let switches): return try set(switches, now)
        case .remove(let topic): return remove(try app(topic), now)
        case .badge(let topic, let number):
            guard 0...PhoneAction.highestBadge ~= number else {
                throw DeviceError(.notPossible, "a badge is a number from 0 to \(PhoneAction.highestBadge)")
            }
            let index = try app(topic)
            // What the user does not let it do by a notification, it does not do by itself either.
            if state.apps[index].permission?.badges == true { state.apps[index].badge = number }
            return []
        case .install: throw DeviceError(.notPossible, "a bundle is installed by its path")
        }
    }

    // Notifications.

    private func shown(_ id: String) throws -> PhoneState.Shown {
        guard let shown = state.shown.first(where: { $0.view.id == id }) else {
            throw DeviceError(.notPossible, "there is no notification \(id.prefix(64)): it may have been replaced")
        }
        return shown
    }

    private mutating func tap(_ id: String, _ now: WallTime) throws -> [PhoneOrder] {
        let shown = try shown(id)
        let index = try app(shown.app)
        _ = takeAway(id)
        return open(index, with: shown, now) + answer(shown, .opened)
    }

    private mutating func act(
        _ id: String,
        _ identifier: String,
        _ text: String?,
        _ now: WallTime
    ) throws -> [PhoneOrder] {
        let shown = try shown(id)
        let index = try app(shown.app)
        guard let action = shown.view.actions.first(where: { $0.identifier == identifier }) else {
            let names = shown.view.actions.map { "\"\($0.identifier)\"" }.joined(separator: ", ")
            let words = names.isEmpty ? "it has no actions" : "it has \(names)"
            throw DeviceError(.notPossible, "notification \(id) has no action \"\(identifier.prefix(64))\": \(words)")
        }
        guard !action.takesText || text != nil else {
            throw DeviceError(.notPossible, "the action \"\(action.identifier)\" needs a \"text\"")
        }
        guard (text?.utf8.count ?? 0) <= 4096 else {
            throw DeviceError(.notPossible, "the text is longer than 4096 bytes")
        }
        let answered = action.takesText ? text : nil
        _ = takeAway(id)
        if action.needsUnlocking || action.opensApp { state.isLocked = false }
        var orders: [PhoneOrder] = []
        if action.opensApp {
            enter(index, shown)
            note("\(name(index)) is open", now)
            orders += deliverHeld(index, now)
        }
        note("\(name(index)): the user chose \(action.title)", now)
        orders.append(tell(.action, shown.arrival, index, action: action.identifier, text: answered))
        if let run = run(.action, index, shown.arrival, now, action: action.identifier, text: answered) {
            orders.append(run)
        }
        if state.apps[index].state == .notRunning || state.apps[index].state == .endedByUser {
            state.apps[index].state = .background
        }
        return orders + answer(shown, .acted, action: action.identifier, text: answered)
    }

    private func answer(
        _ shown: PhoneState.Shown,
        _ deed: SawRecord.Answer.Deed,
        action: String? = nil,
        text: String? = nil
    ) -> [PhoneOrder] {
        shown.arrival.apnsID.map { [.amend($0, .answered(SawRecord.Answer(did: deed, action: action, text: text)))] }
            ?? []
    }

    // Apps.

    /// The user looks at an app, by its icon or by a notification.
    private mutating func open(_ index: Int, with shown: PhoneState.Shown?, _ now: WallTime) -> [PhoneOrder] {
        let wasForeground = state.apps[index].state == .foreground
        state.isLocked = false
        enter(index, shown)
        note("\(name(index)) is open" + (shown == nil ? "" : ", by a notification"), now)
        var orders = deliverHeld(index, now)
        if let shown { orders.append(tell(.opened, shown.arrival, index)) }
        if shown != nil || !wasForeground, let run = run(.open, index, shown?.arrival, now) { orders.append(run) }
        return orders
    }

    private mutating func enter(_ index: Int, _ shown: PhoneState.Shown?) {
        if state.foreground != state.apps[index].topic { leave() }
        let app = state.apps[index]
        let image: Presentation.LaunchImage = app.hasSnapshot ? .snapshot : .standard
        if app.state != .foreground || shown != nil {
            state.apps[index].openedWith = shown?.arrival.payload
            state.apps[index].launchImage =
                shown?.launchImage
                ?? (app.hasSnapshot ? nil : bundles[app.topic]?.launchImageFile) ?? image.description
        }
        state.apps[index].state = .foreground
        state.foreground = app.topic
    }

    /// The user looks at no app any more.
    mutating func leave() {
        guard let topic = state.foreground else { return }
        state.foreground = nil
        received[topic] = nil
        guard let index = state.apps.firstIndex(where: { $0.topic == topic }) else { return }
        state.apps[index].state = .background
        state.apps[index].hasSnapshot = true
    }

    /// What was held back while the app was ended by the user, it gets when it is opened.
    private mutating func deliverHeld(_ index: Int, _ now: WallTime) -> [PhoneOrder] {
        guard let held = state.apps[index].held else { return [] }
        state.apps[index].held = nil
        return wake(held, index, now)
    }

    private mutating func end(_ index: Int, _ now: WallTime) -> [PhoneOrder] {
        let topic = state.apps[index].topic
        if state.foreground == topic { state.foreground = nil }
        received[topic] = nil
        state.apps[index].state = .endedByUser
        state.apps[index].hasSnapshot = false
        state.apps[index].openedWith = nil
        state.apps[index].launchImage = nil
        note("\(name(index)) was ended by the user", now)
        return [.endPrograms(topic)]
    }

    // Switches.

    private mutating func set(_ switches: PhoneSwitches, _ now: WallTime) throws -> [PhoneOrder] {
        if let languages = switches.languages { try Self.check(languages) }
        var orders: [PhoneOrder] = []
        if let locked = switches.locked { orders += try perform(locked ? .lock : .unlock, now) }
        if let languages = switches.languages, languages != state.languages {
            state.languages = languages
            note("languages: \(languages.joined(separator: ", "))", now)
            orders += present.sorted { $0.name < $1.name }.map { .tell($0, .languages(languages)) }
        }
        if let network = switches.network, network != state.hasNetwork {
            state.hasNetwork = network
            note(network ? "the network is back" : "the network is gone", now)
            if network { connection.state = .connecting }
            connection.reason = network ? nil : connection.reason
            connection.retryIn = nil
            orders.append(.setNetwork(network))
        }
        if let saving = switches.saving, saving != state.isSaving {
            state.isSaving = saving
            note(saving ? "saves power" : "saves no power any more", now)
            orders.append(.setSaving(saving))
        }
        if let muted = switches.muted, muted != state.isMuted {
            state.isMuted = muted
            note(muted ? "muted" : "not muted any more", now)
        }
        if let focus = switches.focus, focus != state.isFocused {
            state.isFocused = focus
            note(focus ? "a Focus is on" : "the Focus is off", now)
        }
        return orders
    }

    private static func check(_ languages: [String]) throws {
        let isGood = languages.allSatisfy { language in
            (2...35).contains(language.utf8.count)
                && language.utf8.allSatisfy {
                    switch $0 {
                    case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                        UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "_"):
                        true
                    default: false
                    }
                }
        }
        guard isGood, (1...20).contains(languages.count) else {
            throw DeviceError(.notPossible, "languages must be one to twenty codes, like de or pt-BR")
        }
    }
}
