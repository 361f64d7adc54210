import Foundation
import HTTPTypes
import HeraldJSON
import HeraldModel
import HeraldPhone

/// The app on a device: the family's timers, a local notification for each, and the connection to the family's server.
///
/// Events of the device and requests of the page only change the timers. One task, ``settle()``, brings everything else up
/// to their state, one step after the other.
actor KitchenApp {
    /// The category of a timer's notification, and its buttons.
    static let category = "TIMER"
    static let more = "MORE"
    static let stop = "STOP"

    private let topic: Topic
    private let socket: String
    private let file: JSONFile<TimerBook>
    private let family: FamilyClient?
    private var book: TimerBook
    /// The timers in the file.
    private var kept: TimerBook
    /// The device; nil while its agent is away.
    private var app: LocalApp?
    private var device: String?
    private var token: DeviceToken?
    private var languages: [String] = []
    /// The silent notifications that woke the app, and whose work is not done.
    private var woken: [NotificationID] = []
    /// The title of the last remote notification and its time, for the page.
    private var news: (title: String, time: Double)?
    /// The reason why there is no device.
    private var away: String?
    /// The reason why the timers are not kept, or the device does not ring for each.
    private var ringTrouble: String?
    /// The reason why the timers are not with the family.
    private var trouble: String?
    private var isSynced = false
    /// The time at which the app last asked its server.
    private var asked = 0.0
    private let work: AsyncStream<Void>
    private let wake: AsyncStream<Void>.Continuation

    /// Creates the app.
    /// - Parameters:
    ///   - topic: The app's bundle identifier.
    ///   - device: The folder of the device.
    ///   - family: The family's server; nil for a kitchen of its own.
    /// - Throws: ``KitchenRefusal`` if the app's file cannot be read.
    init(_ topic: Topic, device: String, family: FamilyClient?) throws {
        self.topic = topic
        socket = "\(device)/run/agent.sock"
        file = JSONFile("\(device)/containers/\(topic)/timers.json")
        self.family = family
        kept = try file.read() ?? TimerBook()
        book = kept
        (work, wake) = AsyncStream.makeStream(bufferingPolicy: .bufferingNewest(1))
    }

    /// Runs the app until the task is cancelled, or another copy of it takes its place.
    /// - Throws: ``KitchenRefusal``.
    nonisolated func run() async throws {
        try await withThrowingTaskGroup(of: Void.self) { group in
            defer { group.cancelAll() }
            group.addTask { await self.settle() }
            group.addTask { await self.retry() }
            group.addTask { try await self.connect() }
            try await group.next()
        }
    }

    // MARK: - The device

    /// Holds the connection to the device, and connects again when its agent was away.
    private nonisolated func connect() async throws {
        while !Task.isCancelled {
            do {
                try await LocalApp.run(topic, socket: socket) { app in
                    try await self.launched(app)
                    for await event in app.events { try await self.take(event) }
                }
                await self.disconnected("the agent closed the connection")
            } catch let refusal as KitchenRefusal {
                throw refusal
            } catch {
                await self.disconnected("\(error)")
            }
            try? await Task.sleep(for: KitchenLimits.retry)
        }
    }

    /// The app has started, or the agent has: it registers its category, and asks for what it tells its server.
    private func launched(_ app: LocalApp) async throws {
        try await app.setCategories(Self.categories)
        languages = try await app.languages()
        device = try await app.device.snapshot().device
        self.app = app
        away = nil
        isSynced = false
        say("connected to the device")
        wake.yield()
    }

    private func disconnected(_ words: String) {
        if away != words { say("no device: \(words)") }
        app = nil
        away = words
    }

    private func take(_ event: LocalApp.Event) async throws {
        switch event {
        case .permission(let kinds), .settings(let kinds):
            let words = kinds.map(\.rawValue).sorted().joined(separator: ", ")
            say("the user permits: \(words.isEmpty ? "nothing" : words)")
        case .token(let token, for: topic):
            self.token = token
            say("got a device token")
        case .token: break
        case .refused(let reason):
            token = nil
            say("no device token: \(reason)")
        case .languages(let languages):
            self.languages = languages
            say("the user's languages: \(languages.joined(separator: ", "))")
        case .notification(let notification): await take(notification)
        case .replaced: throw KitchenRefusal("another KitchenTimer runs on this device: only one can")
        case .device, .channel: break
        }
        isSynced = false
        wake.yield()
    }

    private func take(_ notification: LocalApp.Notification) async {
        let timer = notification.payload.members?["timer"]?.text
        switch (notification.cause, timer, notification.action) {
        case (.background, _, _):
            say("woken by a silent notification")
            if let id = notification.id { woken.append(id) }
        case (.action, .some(let timer), .some(let action)):
            say("the user pressed \(action)")
            // The timer may be gone: the notification is a day old.
            try? await press(action, timer)
        case (.opened, nil, _), (.foreground, nil, _):
            let alert = notification.payload.members?["aps"]?.members?["alert"]
            if let title = alert?.members?["title"]?.text { news = (title, await now()) }
        default: break
        }
    }

    // MARK: - The user

    /// Starts a timer.
    /// - Throws: ``KitchenRefusal``.
    func start(_ name: String, seconds: Double) async throws {
        let now = await now()
        try book.start(name, seconds: seconds, id: UUID().uuidString.lowercased(), now: now)
        changed()
    }

    /// Does what a button says, of a notification or of the page.
    /// - Throws: ``KitchenRefusal``.
    func press(_ action: String, _ timer: String) async throws {
        let now = await now()
        switch action {
        case Self.more: try book.prolong(timer, now: now)
        case Self.stop: try book.stop(timer)
        default: throw KitchenRefusal("there is no button \(action.prefix(64))", status: .notFound)
        }
        changed()
    }

    /// Tells the rest of the family that dinner is ready.
    /// - Returns: The number of devices that were told.
    /// - Throws: ``KitchenRefusal``.
    func dinner() async throws -> Int {
        guard let family, let device else {
            throw KitchenRefusal("this kitchen has no family: start the app with --server", status: .conflict)
        }
        return try await family.dinner(from: device)
    }

    /// The app as its page shows it.
    func view() async -> KitchenView {
        let now = await now()
        // Silent notifications may be late: while the page is open, the app asks by itself.
        if abs(now - asked) > KitchenView.freshSeconds { changed() }
        let since = now - KitchenView.keptSeconds
        return KitchenView(
            now: now,
            languages: languages,
            timers: book.timers.filter { !$0.isStopped && $0.ends > since },
            news: news.flatMap { $0.time > since ? $0.title : nil },
            trouble: away ?? ringTrouble ?? trouble
        )
    }

    private func changed() {
        isSynced = false
        wake.yield()
    }

    /// The time by the device's clock, which a test may have moved.
    private func now() async -> Double {
        if let app, let snapshot = try? await app.device.snapshot() { return snapshot.time }
        return Date().timeIntervalSince1970
    }

    // MARK: - One step after the other

    /// Brings the file, the notifications, the badge and the server up to the state of the timers, after each change.
    private func settle() async {
        for await _ in work {
            let finished = woken
            woken = []
            await ring()
            let outcome = await synchronize()
            if outcome == .newData { await ring() }
            for id in finished {
                // Its thirty seconds may be over.
                try? await app?.done(id, outcome)
            }
        }
    }

    private func retry() async {
        while !Task.isCancelled {
            try? await Task.sleep(for: KitchenLimits.retry)
            if !isSynced || ringTrouble != nil { wake.yield() }
        }
    }

    /// Keeps the timers, and has the device ring for each.
    ///
    /// A failure holds up nothing else, and ``retry()`` tries again.
    private func ring() async {
        var failure: String?
        do {
            try keep()
        } catch {
            failure = "\(error)"
        }
        do {
            if let app { try await schedule(on: app) }
        } catch {
            failure = failure ?? "the device does not ring: \(error)"
        }
        if let failure, failure != ringTrouble { say(failure) }
        ringTrouble = failure
    }

    private func keep() throws {
        guard book != kept else { return }
        try file.write(book)
        kept = book
    }

    /// Brings the device's notifications and the badge up to the state of the timers.
    /// - Throws: The first failure, after all the rest is done.
    private func schedule(on app: LocalApp) async throws {
        // In this order: one that rings meanwhile is over, and not scheduled again.
        let pending = try await app.pending()
        let now = await now()
        let payloads = pending.map { ($0.notification.id, $0.notification.payload) }
        let plan = RingPlan(book, pending: Dictionary(payloads) { $1 }, now: now)
        // A timer that rings meanwhile is not pending any more.
        for id in plan.cancelled { try? await app.cancel(id) }
        var failure: (any Error)?
        for ring in plan.rings {
            let notification = LocalNotification(
                id: ring.id,
                payload: ring.payload,
                trigger: .after(.seconds(ring.after))
            )
            do {
                try await app.schedule(notification)
            } catch {
                failure = failure ?? error
            }
        }
        try await setBadge(on: app)
        if let failure { throw failure }
    }

    /// Sets the number on the app's icon: the running timers.
    ///
    /// A timer that rings meanwhile has set a newer number, so the app counts again.
    private func setBadge(on app: LocalApp) async throws {
        var number: Int
        repeat {
            number = book.running(at: await now()).count
            try await app.setBadge(number)
        } while await book.running(at: now()).count != number
    }

    /// Exchanges the timers with the family's server, and tells it the device's token and languages.
    private func synchronize() async -> DisplayRecord.BackgroundOutcome {
        guard let family, let device else {
            isSynced = family == nil
            return .noData
        }
        isSynced = true
        asked = await now()
        do {
            let mine = FamilyMessage(device: device, token: token?.hex, languages: languages, timers: book.timers)
            let theirs = try await family.synchronize(mine)
            trouble = nil
            return book.merge(theirs, now: await now()) ? .newData : .noData
        } catch {
            isSynced = false
            trouble = "\(error)"
            return .failed
        }
    }
}

extension KitchenApp {
    /// The category that the app registers at each launch.
    ///
    /// The titles are keys of the bundle's `Localizable.strings`.
    static var categories: [NotificationCategory] {
        [
            NotificationCategory(
                identifier: category,
                actions: [
                    NotificationCategory.Action(identifier: more, title: "MORE"),
                    NotificationCategory.Action(identifier: stop, title: "STOP", isDestructive: true),
                ]
            )
        ]
    }
}

/// The app's state for its page.
struct KitchenView: Encodable {
    /// How long a timer that has rung and a notification are shown, in seconds.
    static let keptSeconds = 600.0
    /// How long the timers count as the family's while the page is open, in seconds.
    static let freshSeconds = 10.0

    var now: Double
    var languages: [String]
    var timers: [CountdownTimer]
    var news: String?
    var trouble: String?
}
