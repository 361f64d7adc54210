import Foundation

/// Notifications stored per second by group commit, against the sqlite3 library appending the same rows raw.
///
///     StoreBench FOLDER [--count N] [--payload BYTES] [--slots N] [--delay MICROSECONDS]
///         [--checkpoint PAGES] [--gap-checkpoint PAGES] [--rate PER-SECOND] [--restart] [--journal LINES]
///
/// Both write every row durably, in transactions of the same size, with the same settings, into a file in the folder. Raw
/// is only that; ours also keeps the journal (two lines for each, if it replaces another), the index, and a checksum, and
/// tells of every put. With fewer slots than notifications each put replaces an older one, and raw deletes it too.
/// Prints one line of JSON. With `--rate` ours is given so many per second, evenly, instead of as many as it takes, and raw
/// is left out: what counts then is how long a put waits for its report. `--restart` measures instead how long the start takes on
/// what an earlier run left in the folder. `--journal` fills a journal instead, and measures each kind of search in it.
@main
struct StoreBench {
    struct Options {
        var folder = ""
        var count = 200_000
        var payload = 300
        var slots = Int.max
        var delay = 0
        var checkpoint = 0
        var gapCheckpoint = 0
        var rate = 0
        var isRestart = false
        var journal = 0
    }

    static func main() async throws {
        guard let options = options(CommandLine.arguments.dropFirst()) else {
            print(
                """
                usage: StoreBench FOLDER [--count N] [--payload BYTES] [--slots N] [--delay MICROSECONDS]
                                  [--checkpoint PAGES] [--gap-checkpoint PAGES] [--rate PER-SECOND] [--restart]
                                  [--journal LINES]
                """
            )
            exit(64)
        }
        try FileManager.default.createDirectory(atPath: options.folder, withIntermediateDirectories: true)
        if options.journal > 0 {
            try await JournalBench(folder: options.folder, lines: options.journal).run()
            return
        }
        let ours = OurStore(options)
        if options.isRestart {
            try await ours.measureRestart()
            return
        }
        let our = try await ours.run()
        var report: [(String, String)] = [("ours", "\(Int(our.rate))"), ("unit", "\"notifications/s\"")]
        report += [("ours_cpu_us", decimal(our.cpu)), ("batch", "\(our.batch)")]
        if options.rate == 0 {
            let peer = try RawStore(options, batch: our.batch).run()
            report += [("peer", "\(Int(peer.rate))"), ("peer_cpu_us", decimal(peer.cpu))]
        }
        report += [
            ("p50_ms", decimal(our.p50)), ("p99_ms", decimal(our.p99)), ("max_ms", decimal(our.longest)),
            ("checkpoints", "\(our.checkpoints)"), ("mean_checkpoint_ms", decimal(our.meanCheckpoint)),
            ("longest_checkpoint_ms", decimal(our.longestCheckpoint)),
        ]
        print("{" + report.map { "\"\($0)\":\($1)" }.joined(separator: ",") + "}")
    }

    static func decimal(_ value: Double) -> String { String(format: "%.2f", value) }

    private static func options(_ arguments: ArraySlice<String>) -> Options? {
        var options = Options()
        var rest = arguments
        while let argument = rest.popFirst() {
            switch argument {
            case "--restart": options.isRestart = true
            case "--count", "--payload", "--slots", "--delay", "--checkpoint", "--gap-checkpoint", "--rate",
                "--journal":
                guard let value = rest.popFirst().flatMap(Int.init), value >= 0 else { return nil }
                switch argument {
                case "--count": options.count = max(1, value)
                case "--payload": options.payload = value
                case "--slots": options.slots = max(1, value)
                case "--checkpoint": options.checkpoint = value
                case "--gap-checkpoint": options.gapCheckpoint = value
                case "--rate": options.rate = value
                case "--journal": options.journal = value
                default: options.delay = value
                }
            default:
                guard options.folder.isEmpty, !argument.hasPrefix("-") else { return nil }
                options.folder = argument
            }
        }
        return options.folder.isEmpty ? nil : options
    }

    /// User and system time of the process, in seconds.
    static func processorTime() -> Double {
        var time = timespec()
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time)
        return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
    }
}
