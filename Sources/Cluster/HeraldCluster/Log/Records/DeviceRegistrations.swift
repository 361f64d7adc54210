package import HeraldMailbox
package import HeraldModel

/// All registrations of one device, live and ended: one record of the log.
package struct DeviceRegistrations: LogRecord, Hashable {
    package static let kind: StaticString = "registrations"

    /// A registration, and its token on the feedback list.
    struct Entry: Hashable {
        var generation: UInt32
        var isLive: Bool
        var isEnabled: Bool
        var registered: WallTime
        var ended: WallTime?
        var feedback: Feedback?
    }

    /// A token of an ended registration to which a provider has sent.
    struct Feedback: Hashable {
        let generation: UInt32
        let time: WallTime
    }

    package let device: DeviceNumber
    /// The fence of the device's newest connection that has begun or has changed something; 0 if there was none.
    package private(set) var fence: UInt64 = 0
    /// The least generation of a new registration: greater than that of every forgotten one.
    package private(set) var generationFloor: UInt32 = 0
    private(set) var entries: [AppNumber: Entry] = [:]

    package init(_ device: DeviceNumber) {
        self.device = device
    }

    /// Registrations that another store has, with their generations, and the device's tokens on the feedback list.
    ///
    /// `generationFloor` is the least generation of a new registration.
    package init(
        _ device: DeviceNumber,
        _ registrations: [Registration],
        feedback: [FeedbackRecord],
        generationFloor: UInt32
    ) {
        self.device = device
        self.generationFloor = generationFloor
        for registration in registrations {
            entries[registration.slot.app] = Entry(
                generation: registration.generation,
                isLive: registration.isLive,
                isEnabled: registration.isEnabled,
                registered: registration.registered,
                ended: registration.ended
            )
        }
        for record in feedback { addFeedback(record) }
    }

    /// Whether there is nothing to keep.
    package var isEmpty: Bool { entries.isEmpty && generationFloor == 0 }

    /// The registrations, in no order.
    package var registrations: [Registration] { entries.map { registration($0, $1) } }

    package func registration(of app: AppNumber) -> Registration? { entries[app].map { registration(app, $0) } }

    private func registration(_ app: AppNumber, _ entry: Entry) -> Registration {
        Registration(
            slot: Slot(device: device, app: app),
            generation: entry.generation,
            isLive: entry.isLive,
            registered: entry.registered,
            ended: entry.ended,
            isEnabled: entry.isEnabled
        )
    }

    /// The tokens on the feedback list.
    package var feedback: [FeedbackRecord] {
        entries.compactMap { app, entry in
            entry.feedback.map {
                FeedbackRecord(slot: Slot(device: device, app: app), generation: $0.generation, time: $0.time)
            }
        }
    }

    // MARK: - Changes

    // Each is idempotent: repeated after an unknown outcome, it changes nothing more.

    /// Takes the record over for a connection that begins, or that asks for a change.
    ///
    /// Older connections change nothing any more, however late their requests come.
    /// - Throws: If a newer connection has it.
    package mutating func take(by fence: UInt64) throws(NewerConnection) {
        guard fence >= self.fence else { throw NewerConnection() }
        self.fence = fence
    }

    /// Makes a registration, or confirms it; an ended one gets a generation that no token ever had.
    /// - Returns: nil if there is no such generation any more.
    package mutating func register(_ app: AppNumber, at moment: WallTime) -> Registration? {
        var entry =
            entries[app]
            ?? Entry(generation: generationFloor, isLive: true, isEnabled: true, registered: moment)
        if !entry.isLive {
            let latest = max(entry.generation, generationFloor)
            guard latest < .max else { return nil }
            entry.generation = latest + 1
            entry.isLive = true
            entry.isEnabled = true
            entry.registered = moment
            entry.feedback = nil
        }
        entries[app] = entry
        return registration(app, entry)
    }

    /// Ends a registration; nothing happens if it is not live.
    package mutating func unregister(_ app: AppNumber, at moment: WallTime) {
        guard entries[app]?.isLive == true else { return }
        entries[app]?.isLive = false
        entries[app]?.ended = moment
    }

    /// Sets whether the user wants the app's notifications; nothing happens without a registration.
    package mutating func setEnabled(_ enabled: Bool, _ app: AppNumber) {
        entries[app]?.isEnabled = enabled
    }

    /// The apps of all but the latest `limit` ended registrations, latest first.
    package func endedApps(beyond limit: Int) -> [AppNumber] {
        let ended = entries.filter { !$1.isLive }.sorted { left, right in
            let times = (left.value.ended?.milliseconds ?? 0, right.value.ended?.milliseconds ?? 0)
            return times.0 == times.1 ? left.key.value > right.key.value : times.0 > times.1
        }
        return ended.dropFirst(max(0, limit)).map(\.key)
    }

    /// Forgets ended registrations, and raises the generation floor above theirs.
    package mutating func forget(_ apps: [AppNumber]) {
        for app in apps {
            guard let entry = entries[app], !entry.isLive else { continue }
            generationFloor = max(generationFloor, entry.generation < .max ? entry.generation + 1 : .max)
            entries[app] = nil
        }
    }

    /// Puts a token of an ended registration on the feedback list, unless one of the same or a later generation is there.
    package mutating func addFeedback(_ record: FeedbackRecord) {
        guard let entry = entries[record.slot.app], !entry.isLive else { return }
        if let listed = entry.feedback, listed.generation >= record.generation { return }
        entries[record.slot.app]?.feedback = Feedback(generation: record.generation, time: record.time)
    }

    /// Takes exactly this token off the feedback list.
    package mutating func clearFeedback(_ record: FeedbackRecord) {
        let listed = Feedback(generation: record.generation, time: record.time)
        guard entries[record.slot.app]?.feedback == listed else { return }
        entries[record.slot.app]?.feedback = nil
    }

    // MARK: - Form

    private enum Flag {
        static let isLive: UInt8 = 1
        static let isEnabled: UInt8 = 2
        static let hasEnded: UInt8 = 4
        static let hasFeedback: UInt8 = 8
        static let all = isLive | isEnabled | hasEnded | hasFeedback
    }

    package init(fields: inout RecordReader) throws(RecordError) {
        device = DeviceNumber(try fields.integer())
        fence = try fields.integer()
        generationFloor = try fields.integer()
        var before: AppNumber?
        for _ in 0..<(try fields.integer(UInt16.self)) {
            let app = AppNumber(try fields.integer())
            // One form only: in the order of the numbers.
            if let before, before.value >= app.value { throw fields.damaged }
            before = app
            let flags = try fields.flags(known: Flag.all)
            var entry = Entry(
                generation: try fields.integer(),
                isLive: flags & Flag.isLive != 0,
                isEnabled: flags & Flag.isEnabled != 0,
                registered: try fields.time()
            )
            if flags & Flag.hasEnded != 0 { entry.ended = try fields.time() }
            if flags & Flag.hasFeedback != 0 {
                entry.feedback = Feedback(generation: try fields.integer(), time: try fields.time())
            }
            entries[app] = entry
        }
    }

    package func write(to fields: inout RecordWriter) {
        fields.integer(device.value)
        fields.integer(fence)
        fields.integer(generationFloor)
        let ordered = entries.sorted { $0.key.value < $1.key.value }.prefix(Int(UInt16.max))
        fields.integer(UInt16(ordered.count))
        for (app, entry) in ordered {
            fields.integer(app.value)
            var flags = entry.isLive ? Flag.isLive : 0
            if entry.isEnabled { flags |= Flag.isEnabled }
            if entry.ended != nil { flags |= Flag.hasEnded }
            if entry.feedback != nil { flags |= Flag.hasFeedback }
            fields.integer(flags)
            fields.integer(entry.generation)
            fields.time(entry.registered)
            if let ended = entry.ended { fields.time(ended) }
            if let feedback = entry.feedback {
                fields.integer(feedback.generation)
                fields.time(feedback.time)
            }
        }
    }
}
