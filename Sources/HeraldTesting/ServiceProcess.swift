import Foundation
import Synchronization

/// A running `herald serve`, which ends with the process that started it, however that ends.
final class ServiceProcess: Sendable {
    /// The shell script that guards the service.
    ///
    /// Its standard input ends with the test's process. Then it stops the service, and deletes its folder.
    private static let guardian = """
        folder=$1
        shift
        "$@" &
        service=$!
        exec >&-
        read -r line
        kill "$service"
        wait "$service"
        rm -rf "$folder"
        """

    private let shell: ChildProcess
    /// The writing end of the guardian's standard input.
    private let lifeline: Lifeline

    /// Starts a service, and waits until it is ready.
    /// - Parameters:
    ///   - binary: The binary.
    ///   - options: Further options of `herald serve`.
    ///   - folder: A folder of its own, which goes with it. The data folder is `data` in it.
    /// - Throws: ``HeraldTestError`` with what the service has said.
    init(_ binary: HeraldBinary, options: [String], folder: String) async throws {
        let log = folder + "/serve.log"
        let ports = ["api", "binary", "feedback", "device", "activation", "console"].flatMap { ["--\($0)-port", "0"] }
        let command = [binary.path, "serve", "--data", folder + "/data"] + ports + options
        let (shell, output, input) = try ServiceProcess.start(command, log: log, folder: folder)
        self.shell = shell
        lifeline = input
        guard await ServiceProcess.isReady(output) else {
            let words = (try? String(contentsOfFile: log, encoding: .utf8)) ?? ""
            await stop()
            throw HeraldTestError("`herald serve` ended before it was ready: \(words)")
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
        folder: String
    ) throws -> (shell: ChildProcess, output: Descriptor, input: Lifeline) {
        let input = try Descriptor.pipe()
        let output = try Descriptor.pipe()
        let shell = try ChildProcess(
            "/bin/sh",
            ["-c", guardian, "herald-guardian", folder] + command,
            input: input.reader,
            output: output.writer,
            errors: Descriptor(opening: log, O_WRONLY | O_CREAT | O_APPEND)
        )
        return (shell, output.reader, Lifeline(input.writer))
    }

    /// Whether the service says that it is ready, before its output ends.
    ///
    /// A thread reads on until then.
    private static func isReady(_ output: Descriptor) async -> Bool {
        await withCheckedContinuation { continuation in
            Thread.detachNewThread {
                var said: [UInt8] = []
                var isReady = false
                while let bytes = output.next() {
                    guard !isReady else { continue }
                    said += bytes
                    isReady = said.split(separator: UInt8(ascii: "\n")).contains { $0.elementsEqual("ready".utf8) }
                    if isReady { continuation.resume(returning: true) }
                }
                if !isReady { continuation.resume(returning: false) }
            }
        }
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
