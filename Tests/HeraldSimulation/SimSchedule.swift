/// The chances of each step of a history: some steps never happen in it, and others often.
///
/// Where everything happens all the time, nothing lasts: the next connection mends what a lost ring has left behind. So each
/// history has a mixture of its own.
struct SimSchedule {
    enum Step {
        case post, connect, disconnect, savePower, stall, reinstall, cutOff, pause, restart, deafen, depose, release
        case rotate, standStill
    }

    /// The steps with their usual chances of 100.
    private static let usual: [(Step, Int)] = [
        (.post, 46), (.connect, 16), (.disconnect, 4), (.savePower, 4), (.stall, 4), (.reinstall, 4), (.cutOff, 4),
        (.pause, 3), (.restart, 1), (.deafen, 2), (.depose, 4), (.release, 8), (.rotate, 1), (.standStill, 1),
    ]

    private let chances: [(step: Step, chance: Int)]
    private let sum: Int

    init(_ random: inout SeededGenerator) {
        var chances: [(Step, Int)] = []
        for (step, chance) in Self.usual {
            let factor = step == .post ? 2 : [0, 1, 2, 2, 4][random.below(5)]
            chances.append((step, chance * factor))
        }
        self.chances = chances
        sum = chances.reduce(0) { $0 + $1.1 }
    }

    func step(_ random: inout SeededGenerator) -> Step {
        var number = random.below(sum)
        for (step, chance) in chances {
            if number < chance { return step }
            number -= chance
        }
        return .post
    }
}
