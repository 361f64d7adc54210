import Foundation
import HeraldPhone
import Synchronization

/// A running `herald serve`, which ends with the process that started it, however that ends.
final class RunningService: Sendable {
    /// The shell script that guards the service.
    ///
    /// Its standard input ends with the test's process. Then it stops the service, by force if that takes too long (seconds), and
    /// deletes its folder.
    private static let guardian = """
        folder=$1
        patience=$2
        shift 2
        "$@" &
        service=$!
        exec >&-
        read -r line
        kill "$service"
        (
            trap 'kill "$sleep"; exit' TERM
            sleep "$patience" &
            sleep=$!
            wait "$sleep" && kill -KILL "$service"
        ) 2>/dev/null &
        force=$!
        wait "$service"
        kill "$force" 2>/dev/null
        rm -rf "$folder"
        """

    private let shell: ChildProcess
    /// The writing end of the guardian's standard input.
    private let lifeline: Lifeline

    /// Starts a service, and waits until it is ready.
    ///
    /// Its folder goes with it; the data folder is `data` in it. `patience`, in seconds, is the limit of the start,
    /// and of the stop before it is forced.
    /// - Throws: ``HeraldTestError`` with what the service has said.
    init(_ binary: HeraldBinary, options: [String], folder: String, patience: Int = 60) async throws {
        let log = folder + "/serve.log"
        let ports = ["api", "binary", "feedback", "device", "activation", "console"].flatMap { ["--\($0)-port", "0"] }
        let command =
            [binary.path, "serve", "--data", folder + "/data", "--catch", "all", "--payload-drills"] + ports + options
        let (shell, output, input) = try RunningService.start(command, log: log, folder: folder, patience: patience)
        self.shell = shell
        lifeline = input
        let isReady = await RunningService.isReady(output, within: .seconds(patience))
        guard isReady == true else {
            let words = (try? String(contentsOfFile: log, encoding: .utf8)) ?? ""
            await stop()
            let fault = isReady == nil ? "is not ready after \(patience) s" : "ended before it was ready"
            throw HeraldTestError("`herald serve` \(fault): \(words)")
        }
    }

    /// Stops the service, and waits until its folder is gone.
    func stop() async {
        if lifeline.cut() { _ = await shell.end() }
    }

    /// The ends that belong to the service are closed here when this returns.
    private static func start(
        _ command: [String],
        log: String,
        folder: String,
        patience: Int
    ) throws -> (shell: ChildProcess, output: Descriptor, input: Lifeline) {
        let input = try Descriptor.pipe()
        let output = try Descriptor.pipe()
        let shell = try ChildProcess(
            "/bin/sh",
            ["-c", guardian, "herald-guardian", folder, "\(patience)"] + command,
            input: input.reader,
            output: output.writer,
            errors: Descriptor(opening: log, O_WRONLY | O_CREAT | O_APPEND)
        )
        return (shell, output.reader, Lifeline(input.writer))
    }

    /// Whether the service says that it is ready, before its output ends; nil if the time is over before.
    ///
    /// A thread reads on until the end.
    private static func isReady(_ output: Descriptor, within time: Duration) async -> Bool? {
        let (words, said) = AsyncStream<Bool>.makeStream()
        Thread.detachNewThread {
            var line: [UInt8] = []
            while let bytes = output.next() {
                line += bytes
                let lines = line.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false)
                if lines.dropLast().contains(where: { $0.elementsEqual("ready".utf8) }) { said.yield(true) }
                line = lines.last.map(Array.init) ?? []
            }
            said.yield(false)
        }
        return await words.first(within: time)
    }
}

/// An end of a pipe that is closed once.
private final class Lifeline: Sendable {
    private let end: Mutex<Descriptor?>

    init(_ end: Descriptor) {
        self.end = Mutex(end)
    }

    /// Closes it.
    /// - Returns: Whether it was open.
    func cut() -> Bool {
        // Released, it is closed.
        end.withLock { $0.take() } != nil
    }
}
