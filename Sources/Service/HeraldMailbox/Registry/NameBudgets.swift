package import HeraldModel

/// The device or team that brought an app's name to the service.
package enum AppOrigin: Hashable, Sendable {
    case device(DeviceNumber)
    /// The team of a provider token key, by creating a channel.
    case team(String)
}

/// Limits how many app names each device and each team brings, in all and within a day; without a clock.
///
/// A name that is forgotten goes back to the budget in all.
struct NameBudgets {
    enum Decision: Hashable {
        case granted
        /// The log has the first refusal of a day.
        case refused(isFirst: Bool)
    }

    private struct Spending {
        var names = 0
        var dayBegan: WallTime
        var today = 0
        var hasReported = false
    }

    private static let day = Duration.seconds(86_400)

    private let names: Int
    private let namesPerDay: Int
    private var spendings: [AppOrigin: Spending] = [:]

    init(_ configuration: RegistryConfiguration) {
        names = configuration.newNames
        namesPerDay = configuration.newNamesPerDay
    }

    /// Spends one name, if the budget allows it.
    mutating func spend(_ origin: AppOrigin, now: WallTime) -> Decision {
        var spending = current(origin, now: now)
        defer { spendings[origin] = spending }
        guard spending.names < names, spending.today < namesPerDay else {
            defer { spending.hasReported = true }
            return .refused(isFirst: !spending.hasReported)
        }
        spending.names += 1
        spending.today += 1
        return .granted
    }

    /// Notes a name of an earlier run of the service.
    mutating func load(_ origin: AppOrigin, created: WallTime, now: WallTime) {
        var spending = current(origin, now: now)
        spending.names += 1
        if created > now - Self.day { spending.today += 1 }
        spendings[origin] = spending
    }

    /// Gives a name back that the store could not make.
    mutating func refund(_ origin: AppOrigin) {
        spendings[origin]?.today -= 1
        forget(origin)
    }

    /// Notes that a name is forgotten.
    mutating func forget(_ origin: AppOrigin) {
        spendings[origin]?.names -= 1
    }

    /// The origins with the most names, most first.
    func largest(_ count: Int) -> [(origin: AppOrigin, names: Int)] {
        spendings.sorted { $0.value.names > $1.value.names }.prefix(count).map { ($0.key, $0.value.names) }
    }

    private func current(_ origin: AppOrigin, now: WallTime) -> Spending {
        var spending = spendings[origin] ?? Spending(dayBegan: now)
        if now >= spending.dayBegan + Self.day || now < spending.dayBegan {
            (spending.dayBegan, spending.today, spending.hasReported) = (now, 0, false)
        }
        return spending
    }
}
