import ArgumentParser

/// Plays histories of a simulated cluster, and fails with the first one that breaks a promise.
///
///     HeraldSimulation 17 1     plays history 17 again
@main struct SimulationCommand: ParsableCommand {
    static let configuration = CommandConfiguration(commandName: "HeraldSimulation")

    @Argument(help: "The number of the first history.") var first: UInt64
    @Argument(help: "How many histories.") var count: UInt64

    func validate() throws {
        guard count > 0, !first.addingReportingOverflow(count).overflow else {
            throw ValidationError("COUNT is at least 1, and FIRST and COUNT together are at most \(UInt64.max)")
        }
    }

    func run() throws {
        guard let finding = try Simulation.finding(in: first..<first + count) else { return }
        print(try Simulation.history(of: finding.seed))
        print("history \(finding.seed):", finding.violations.joined(separator: "\n"))
        throw ExitCode.failure
    }
}
