import HeraldModel

/// The numbers of the apps, and who brought their names; without store or clock.
///
/// An app that a caller works with is pinned, and is not forgotten meanwhile.
struct AppNames {
    enum Pin: Hashable {
        case known(AppNumber)
        /// The store has to make the number.
        case new
        case refused(RegistrationRefusal, isFirst: Bool)
        /// The app is being forgotten: the same works in a moment.
        case busy
    }

    private let limit: Int
    private var budgets: NameBudgets
    private var numbers: [App: AppNumber] = [:]
    private var names: [AppNumber: App] = [:]
    /// The number of ``names`` in each environment.
    private var counts: [PushEnvironment: Int] = [:]
    /// The teams that brought names, by creating a channel.
    private var teams: [App: String] = [:]
    /// The apps that devices have registered.
    private var registered: Set<AppNumber> = []
    /// Callers of each pinned app.
    private var pins: [App: Int] = [:]
    /// The origins of pinned apps that have no number yet.
    private var unmade: [App: AppOrigin?] = [:]
    private var forgetting: Set<App> = []
    private var hasReportedFull = false

    init(_ configuration: RegistryConfiguration) {
        limit = configuration.apps
        budgets = NameBudgets(configuration)
    }

    func number(of app: App) -> AppNumber? { numbers[app] }

    func app(_ number: AppNumber) -> App? { names[number] }

    func team(thatBrought app: App) -> String? { teams[app] }

    func isRegistered(_ app: App) -> Bool { numbers[app].map(registered.contains) ?? false }

    mutating func noteRegistration(_ number: AppNumber) { registered.insert(number) }

    var count: Int { numbers.count }

    var environments: [PushEnvironment] { PushEnvironment.allCases.filter { counts[$0, default: 0] > 0 } }

    var all: [AppNumber] { Array(names.keys) }

    /// The origins with the most names, most first.
    func largest(_ count: Int) -> [(origin: AppOrigin, names: Int)] { budgets.largest(count) }

    mutating func load(_ apps: [AppRecord], registered: Set<AppNumber>, now: WallTime) {
        self.registered = registered
        for record in apps { made(record, now: now) }
    }

    /// Pins an app for a caller, unless a new name is refused.
    mutating func pin(_ app: App, for origin: AppOrigin?, now: WallTime) -> Pin {
        guard !forgetting.contains(app) else { return .busy }
        let number = numbers[app]
        if number == nil, unmade[app] == nil {
            guard numbers.count + unmade.count < limit else {
                defer { hasReportedFull = true }
                return .refused(.tooManyApps, isFirst: !hasReportedFull)
            }
            if let origin, case .refused(let isFirst) = budgets.spend(origin, now: now) {
                return .refused(.tooManyNewNames, isFirst: isFirst)
            }
            unmade.updateValue(origin, forKey: app)
        }
        pins[app, default: 0] += 1
        return number.map { .known($0) } ?? .new
    }

    /// Notes an app that the store has made, for a caller here or at another node.
    mutating func made(_ record: AppRecord, now: WallTime) {
        guard numbers[record.app] != record.number else { return }
        // Spent when it was pinned; the record says who brought the name.
        if let spent = unmade.removeValue(forKey: record.app), let spent { budgets.refund(spent) }
        numbers[record.app] = record.number
        if names.updateValue(record.app, forKey: record.number) == nil {
            counts[record.app.environment, default: 0] += 1
        }
        if case .team(let team) = record.origin { teams[record.app] = team }
        if let origin = record.origin { budgets.load(origin, created: record.created, now: now) }
    }

    /// Notes that the store has forgotten an app.
    mutating func forgotten(_ record: AppRecord) {
        guard let app = names.removeValue(forKey: record.number) else { return }
        counts[app.environment, default: 0] -= 1
        registered.remove(record.number)
        hasReportedFull = false
        if let origin = record.origin { budgets.forget(origin) }
        // The name may have another number by now.
        guard numbers[record.app] == record.number else { return }
        numbers[record.app] = nil
        teams[record.app] = nil
    }

    /// Ends a caller's work; a name that was not made goes back to its budget.
    mutating func unpin(_ app: App) {
        guard let others = pins[app].map({ $0 - 1 }) else { return }
        pins[app] = others > 0 ? others : nil
        if others == 0, let origin = unmade.removeValue(forKey: app), let origin { budgets.refund(origin) }
    }

    /// Begins to forget an app that no caller works with.
    mutating func beginForgetting(_ app: App) -> AppNumber? {
        guard pins[app] == nil, let number = numbers[app], forgetting.insert(app).inserted else { return nil }
        return number
    }

    mutating func endForgetting(_ app: App) { forgetting.remove(app) }
}
