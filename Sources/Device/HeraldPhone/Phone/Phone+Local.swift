import Foundation
import HeraldDevice
import HeraldJSON
import HeraldModel

/// Local notifications, and the device's clock and time zone.
extension Phone {
    /// The name of the device's time zone.
    var zoneName: String { state.timeZone ?? machineZone }

    var zone: TimeZone { TimeZone(identifier: zoneName) ?? .gmt }

    // MARK: - Scheduling

    /// Schedules a local notification of an app.
    /// - Throws: ``DeviceError/Code/notPossible``; then nothing has changed.
    mutating func schedule(_ notification: LocalNotification, of topic: Topic, _ now: WallTime) throws {
        let index = try app(topic)
        try check(notification)
        followClock(now)
        try state.pending.schedule(notification, of: topic, now, in: zone, limits: limits)
        note("\(name(index)) scheduled \(notification.id)", now)
    }

    /// Cancels a pending local notification of an app, or all of them.
    /// - Throws: ``DeviceError/Code/notPossible`` if none has this identifier.
    mutating func cancel(_ id: String?, of topic: Topic, _ now: WallTime) throws {
        let index = try app(topic)
        let count = state.pending.cancel(id, of: topic)
        if let id, count == 0 {
            throw DeviceError(.notPossible, "\(topic) has no pending local notification \"\(id.prefix(64))\"")
        }
        if count > 0 { note("\(name(index)) cancelled \(id ?? "all that it had scheduled")", now) }
    }

    private func check(_ notification: LocalNotification) throws {
        let id = notification.id
        guard (1...64).contains(id.utf8.count), !id.unicodeScalars.contains(where: { $0.value < 32 || $0.value == 127 })
        else {
            throw DeviceError(
                .notPossible,
                "the identifier of a local notification has 1 to 64 bytes, and no control characters"
            )
        }
        if case .after(let time) = notification.trigger, time <= .zero {
            throw DeviceError(.notPossible, "the time after which a local notification is due must be above 0")
        }
        let bytes = notification.payload.bytes
        let payload = try? JSON(bytes, rules: .payload)
        if let fault = LocalNotification.fault(of: payload, bytes: bytes.count, limits: limits) {
            throw DeviceError(.notPossible, fault)
        }
    }

    // MARK: - Showing

    /// Shows the local notifications that are due by the clock, also after a change of clock or time zone.
    mutating func showDue(_ now: WallTime) -> [PhoneEffect] {
        followClock(now)
        // A change of the time zone cancels nothing that was due before it, and may make more due.
        var due = state.pending.takeDue(now, in: zone)
        state.pending.move(to: zone, named: zoneName, now)
        due += state.pending.takeDue(now, in: zone)
        return due.flatMap { show($0, now) }
    }

    private mutating func show(_ pending: PendingNotification, _ now: WallTime) -> [PhoneEffect] {
        guard let index = state.apps.firstIndex(where: { $0.topic == pending.topic }) else { return [] }
        let payload = pending.notification.payload.bytes
        var arrival = PhoneState.Arrival(
            topic: pending.topic,
            payload: Data(payload),
            // As for remote ones, the newest with an identifier replaces the one on the screen.
            collapseID: pending.notification.id,
            time: now.unixSeconds
        )
        arrival.local = pending.notification.id
        arrival.due = pending.next
        return present(arrival, index, extension: nil, payload: payload, now).effects
    }

    // MARK: - Clock and time zone

    /// Follows the machine's clock: what is pending is adjusted if it was set back since the last look.
    private mutating func followClock(_ now: WallTime) {
        let back = (lastTime ?? now.unixSeconds) - now.unixSeconds
        lastTime = now.unixSeconds
        if back > 0 { moveRuns(by: -back) }
        if back > limits.clockCorrectionSeconds { state.pending.clockWentBack(by: back, now, in: zone) }
    }

    /// Moves the time limits of runs with the clock: they are those of the machine.
    private mutating func moveRuns(by seconds: Double) {
        for index in state.runs.indices {
            state.runs[index].deadline = state.runs[index].deadline.map { $0 + seconds }
        }
    }

    /// Whether ``tick(_:)`` changes something now.
    ///
    /// Called every second; notices that the clock was set back.
    mutating func hasToTick(_ now: WallTime) -> Bool {
        if let nextTick, nextTick <= now.unixSeconds { return true }
        if state.pending.zone != zoneName, state.pending.next != nil { return true }
        if let lastTime, now.unixSeconds < lastTime { return true }
        lastTime = now.unixSeconds
        return false
    }

    /// Checks a change of clock and time zone.
    /// - Throws: ``DeviceError/Code/notPossible``.
    func checkTime(_ switches: PhoneSwitches) throws {
        if let clock = switches.clock, !(-limits.clockSeconds...limits.clockSeconds).contains(clock) {
            throw DeviceError(.notPossible, "the clock can be moved by ten years at most")
        }
        if let name = switches.timeZone, name != PhoneSwitches.machineZone, TimeZone(identifier: name) == nil {
            throw DeviceError(
                .notPossible,
                "\"\(name.prefix(64))\" is not a time zone: write one like Europe/Berlin, or \(PhoneSwitches.machineZone)"
            )
        }
    }

    /// Moves the clock and sets the time zone; what is due then is shown at once.
    mutating func setTime(_ switches: PhoneSwitches, _ now: WallTime) -> [PhoneEffect] {
        guard switches.clock != nil || switches.timeZone != nil else { return [] }
        followClock(now)
        var moved = now
        if let clock = switches.clock, clock != state.clockAhead {
            let seconds = clock - state.clockAhead
            moved = now + .milliseconds(Int64(seconds * 1000))
            state.clockAhead = clock
            if seconds < 0 { state.pending.clockWentBack(by: -seconds, moved, in: zone) }
            lastTime = moved.unixSeconds
            moveRuns(by: seconds)
            note("the clock was moved", moved)
        }
        if let name = switches.timeZone {
            state.timeZone = name == PhoneSwitches.machineZone ? nil : name
            note("time zone: \(zoneName)", moved)
        }
        return tick(moved)
    }
}
