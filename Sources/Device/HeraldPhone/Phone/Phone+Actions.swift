import Foundation
import HeraldDevice
import HeraldModel

/// The user's actions.
extension Phone {
    /// Performs an action of the user; `install` is the agent's, because it begins with files.
    /// - Throws: ``DeviceError/Code/notPossible``; then nothing has changed.
    mutating func perform(_ action: PhoneAction, _ now: WallTime) throws -> [PhoneEffect] {
        switch action {
        case .lock:
            state.isLocked = true
            state.notifications.hideBanner()
            note("locked", now)
            return []
        case .unlock:
            // Unlocking leads into the app whose alert the lock screen shows.
            if let id = state.notifications.lockAlerts.first { return try perform(.tap(id: id), now) }
            state.unlock()
            note("unlocked", now)
            return []
        case .home:
            if state.isLocked { throw DeviceError(.notPossible, "the screen is locked: unlock it first") }
            leaveForeground()
            return []
        case .open(let topic): return open(try app(topic), by: nil, now)
        case .end(let topic): return end(try app(topic), now)
        case .tap(let id):
            let shown = try shown(id)
            let index = try app(shown.app)
            state.notifications.remove(id)
            return open(index, by: shown, now) + response(to: shown, .opened)
        case .close(let id):
            let shown = try shown(id)
            state.notifications.remove(id)
            note("closed a notification of \(shown.view.app)", now)
            return response(to: shown, .closed)
        case .clear:
            let closed = state.notifications.clear()
            if !closed.isEmpty { note("cleared all notifications", now) }
            return closed.flatMap { response(to: $0, .closed) }
        case .act(let id, let action, let text): return try act(on: id, action: action, text: text, now)
        case .permit(let topic, let kinds, let style): return permit(try app(topic), kinds, style: style, now)
        case .set(let switches): return try set(switches, now)
        case .remove(let topic): return remove(try app(topic), now)
        case .badge(let topic, let number):
            guard 0...PhoneAction.highestBadge ~= number else {
                throw DeviceError(.notPossible, "a badge is a number from 0 to \(PhoneAction.highestBadge)")
            }
            let index = try app(topic)
            // The user's permission holds for the app's own badge too.
            if state.apps[index].permission?.badges == true { state.apps[index].badge = number }
            return []
        case .categories(let topic, let categories):
            let index = try app(topic)
            state.apps[index].categories = categories
            return []
        case .schedule(let topic, let notification):
            try schedule(notification, of: topic, now)
            return []
        case .cancel(let topic, let id):
            try cancel(id, of: topic, now)
            return []
        case .subscribe(let topic, let channel): return try subscribe(topic, to: channel, now)
        case .unsubscribe(let topic, let channel): return try unsubscribe(topic, from: channel, now)
        case .install: throw DeviceError(.notPossible, "a bundle is installed by its path")
        }
    }

    // MARK: - Notifications

    private func shown(_ id: String) throws -> PhoneState.Shown {
        guard let shown = state.notifications[id] else {
            throw DeviceError(.notPossible, "there is no notification \(id.prefix(64)): it may have been replaced")
        }
        return shown
    }

    private mutating func act(
        on id: String,
        action identifier: String,
        text: String?,
        _ now: WallTime
    ) throws -> [PhoneEffect] {
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
        let text = action.takesText ? text : nil
        let wasEnded = state.apps[index].state == .endedByUser
        state.notifications.remove(id)
        if action.needsUnlocking || action.opensApp { state.unlock() }
        var effects: [PhoneEffect] = []
        if action.opensApp {
            bringToForeground(index, shown)
            note("\(name(index)) is open", now)
            effects += deliverHeld(index, now)
        }
        pressed[shown.app] = (shown.arrival, action.identifier, text)
        note("\(name(index)): the user chose \(action.title)", now)
        effects += respond(to: shown.arrival, index, action: action.identifier, text: text)
        effects += run(.action, of: index, shown.arrival, action: action.identifier, text: text, now)
        if !state.apps[index].state.isRunning { state.apps[index].state = .background }
        if wasEnded { effects += repeatTokens(index, now) }
        return effects + response(to: shown, .acted, action: action.identifier, text: text)
    }

    /// Records the user's response to a notification.
    private func response(
        to shown: PhoneState.Shown,
        _ kind: DisplayRecord.Response.Kind,
        action: String? = nil,
        text: String? = nil
    ) -> [PhoneEffect] {
        guard let id = shown.arrival.recordID else { return [] }
        return [.amend(id, .responded(DisplayRecord.Response(kind: kind, action: action, text: text)))]
    }

    // MARK: - Opening and ending apps

    /// Opens an app by its icon, or by a notification.
    private mutating func open(_ index: Int, by shown: PhoneState.Shown?, _ now: WallTime) -> [PhoneEffect] {
        let former = state.apps[index].state
        state.unlock()
        bringToForeground(index, shown)
        note("\(name(index)) is open" + (shown == nil ? "" : ", by a notification"), now)
        var effects = former == .endedByUser ? repeatTokens(index, now) : []
        effects += deliverHeld(index, now)
        if let shown { effects += respond(to: shown.arrival, index) }
        if shown != nil || former != .foreground { effects += run(.open, of: index, shown?.arrival, now) }
        return effects
    }

    private mutating func bringToForeground(_ index: Int, _ shown: PhoneState.Shown?) {
        if state.foreground != state.apps[index].topic { leaveForeground() }
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

    /// Returns from the open app to the home screen.
    mutating func leaveForeground() {
        guard let topic = state.foreground else { return }
        state.foreground = nil
        received[topic] = nil
        pressed[topic] = nil
        guard let index = state.apps.firstIndex(where: { $0.topic == topic }) else { return }
        state.apps[index].state = .background
        state.apps[index].hasSnapshot = true
    }

    /// Delivers the silent notification that was held back while the user had ended the app.
    mutating func deliverHeld(_ index: Int, _ now: WallTime) -> [PhoneEffect] {
        guard let held = state.apps[index].held else { return [] }
        state.apps[index].held = nil
        return wake(held, index, now)
    }

    private mutating func end(_ index: Int, _ now: WallTime) -> [PhoneEffect] {
        let topic = state.apps[index].topic
        if state.foreground == topic { state.foreground = nil }
        received[topic] = nil
        pressed[topic] = nil
        state.apps[index].state = .endedByUser
        state.apps[index].hasSnapshot = false
        state.apps[index].openedWith = nil
        state.apps[index].launchImage = nil
        note("the user ended \(name(index))", now)
        return [.endPrograms(topic)]
    }

    // MARK: - Switches

    private mutating func set(_ switches: PhoneSwitches, _ now: WallTime) throws -> [PhoneEffect] {
        if let languages = switches.languages { try Self.check(languages) }
        try checkTime(switches)
        var effects: [PhoneEffect] = []
        if let locked = switches.locked { effects += try perform(locked ? .lock : .unlock, now) }
        if let languages = switches.languages, languages != state.languages {
            state.languages = languages
            note("languages: \(languages.joined(separator: ", "))", now)
            effects += connectedApps.sorted { $0.name < $1.name }.map { .notifyApp($0, .languages(languages)) }
            for index in state.apps.indices { effects += runProgram(for: .languages(languages), of: index, now) }
        }
        if let network = switches.network, network != state.hasNetwork { effects.append(setNetwork(network, now)) }
        if let saving = switches.saving, saving != state.isSaving {
            state.isSaving = saving
            note(saving ? "power saving on" : "power saving off", now)
            effects.append(.setSaving(saving))
        }
        if let muted = switches.muted, muted != state.isMuted {
            state.isMuted = muted
            note(muted ? "mute on" : "mute off", now)
        }
        if let focus = switches.focus, focus != state.isFocused {
            state.isFocused = focus
            note(focus ? "Focus on" : "Focus off", now)
        }
        return effects + setTime(switches, now)
    }

    private static func check(_ languages: [String]) throws {
        guard (1...20).contains(languages.count) else {
            throw DeviceError(.notPossible, "a device has 1 to 20 languages, not \(languages.count)")
        }
        for language in languages where !isCode(language) {
            let shown = String(language.prefix(40))
            throw DeviceError(.notPossible, "\"\(shown)\" is not a language code: write one like de or pt-BR")
        }
    }

    /// Whether a text looks like a language tag: a language with two or three characters, and subtags (RFC 5646 §2.1).
    private static func isCode(_ text: String) -> Bool {
        let parts = text.split(separator: text.contains("_") ? "_" : "-", omittingEmptySubsequences: false)
        guard text.utf8.count <= 35, let language = parts.first, (2...3).contains(language.utf8.count) else {
            return false
        }
        func isLetter(_ byte: UInt8) -> Bool { (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(byte | 0x20) }
        return language.utf8.allSatisfy(isLetter)
            && parts.dropFirst().allSatisfy { part in
                (1...8).contains(part.utf8.count) && part.utf8.allSatisfy(\.isASCIIAlphanumeric)
            }
    }
}
