/// Decides whether the process is alive: every part has answered the last question.
///
/// In each round all parts are asked. The next round begins when all have answered.
struct WatchdogRounds {
    /// The next action.
    enum Action: Hashable {
        /// All parts have answered: give a sign of life, and ask all of them again.
        case ask(round: Int)
        /// These parts have not answered yet: log their names, once in a round.
        case report([String])
        /// Some parts have not answered yet, and their names are logged.
        case wait
    }

    private let parts: [String]
    private var round = 0
    /// The parts that have not answered in this round.
    private var missing: Set<Int> = []
    private var isReported = false

    init(parts: [String]) {
        self.parts = parts
    }

    /// A quarter of the watchdog's time has passed.
    mutating func tick() -> Action {
        guard missing.isEmpty else {
            defer { isReported = true }
            return isReported ? .wait : .report(missing.sorted().map { parts[$0] })
        }
        round += 1
        missing = Set(parts.indices)
        isReported = false
        return .ask(round: round)
    }

    /// A part has answered the question of a round.
    mutating func answered(_ part: Int, in round: Int) {
        if round == self.round { missing.remove(part) }
    }
}
