import CPosix
import Foundation
import HeraldModel
import Synchronization

/// A program of the sender: a shell's command line, in a process group of its own, whose output is read line by line.
final class SenderProcess: Sendable {
    /// The longest line, and the most lines of one scenario; more is a flood.
    private static let lineBytes = 1 << 16
    private static let lineCount = 20_000
    /// Lines of standard error that are kept.
    private static let errorLines = 20

    private struct State {
        /// Its standard input; nil once it is closed.
        var input: CInt?
        var errors: [String] = []
        var hasEnded = false
        var wasKilled = false
    }

    private let process: pid_t
    private let status: AsyncStream<Int32>
    private let state = Mutex(State())
    private let threads = DispatchGroup()

    /// Starts a command line for `/bin/sh`, which may write in the folder.
    ///
    /// `take` gets each line of its standard output. `flood` is called once it writes too much.
    /// - Throws: ``Undriven``.
    init(
        _ line: String,
        folder: String,
        environment: [String: String],
        take: @escaping @Sendable (String) -> Void,
        flood: @escaping @Sendable () -> Void
    ) throws {
        let script = "\(folder)/sender-\(UUID().uuidString)"
        let place = ShellWord.quoted(FileManager.default.currentDirectoryPath)
        do {
            try Data("#!/bin/sh\ncd \(place) || exit\n\(line)\n".utf8).write(to: URL(fileURLWithPath: script))
            try FileManager.default.setAttributes([.posixPermissions: 0o700], ofItemAtPath: script)
        } catch {
            throw Undriven("cannot write \(script): \(error)")
        }
        var (input, output, errors): ([CInt], [CInt], [CInt]) = ([-1, -1], [-1, -1], [-1, -1])
        guard herald_pipe(&input) == 0, herald_pipe(&output) == 0, herald_pipe(&errors) == 0 else {
            throw Undriven("no pipe can be made: \(String(cString: strerror(errno)))")
        }
        defer { for end in [input[0], output[1], errors[1]] { Foundation.close(end) } }
        let variables = environment.sorted { $0.key < $1.key }.map { strdup("\($0.key)=\($0.value)") } + [nil]
        defer { for text in variables { free(text) } }
        var started: pid_t = 0
        let code = herald_spawn(&started, script, folder, variables, input[0], output[1], errors[1])
        guard code == 0 else {
            for end in [input[1], output[0], errors[0]] { Foundation.close(end) }
            throw Undriven("it cannot be started: \(String(cString: strerror(code)))")
        }
        let child = started
        process = child
        state.withLock { $0.input = input[1] }
        _ = fcntl(input[1], F_SETFL, fcntl(input[1], F_GETFL) | O_NONBLOCK)
        let (status, ended) = AsyncStream<Int32>.makeStream()
        self.status = status
        read(output[0], atMost: Self.lineCount, take, flood)
        read(errors[0], atMost: .max, { [self] line in keep(line) }, {})
        Thread.detachNewThread { [self] in
            var information = siginfo_t()
            while waitid(P_PID, id_t(child), &information, WEXITED | WNOWAIT) != 0, errno == EINTR {}
            // Children that it left behind end with it, and close their ends of the pipes.
            Foundation.kill(-child, SIGKILL)
            var code: Int32 = 0
            while waitpid(child, &code, 0) < 0, errno == EINTR {}
            state.withLock { $0.hasEnded = true }
            // A child with a session of its own may hold the pipes.
            _ = threads.wait(timeout: .now() + 2)
            ended.yield(code & 0x7F == 0 ? (code >> 8) & 0xFF : 128 + (code & 0x7F))
            ended.finish()
        }
    }

    deinit { closeInput() }

    /// Closes its standard input.
    func closeInput() {
        state.withLock { state in
            if let input = state.input { Foundation.close(input) }
            state.input = nil
        }
    }

    /// Writes a line to its standard input.
    /// - Throws: ``Undriven`` if it does not read.
    func write(_ line: String) async throws {
        var bytes = Array((line + "\n").utf8)[...]
        let deadline = ContinuousClock.now + .seconds(10)
        while !bytes.isEmpty {
            let count = state.withLock { state in
                bytes.withUnsafeBytes { Foundation.write(state.input ?? -1, $0.baseAddress, $0.count) }
            }
            if count > 0 {
                bytes = bytes.dropFirst(count)
            } else if errno == EAGAIN, .now < deadline {
                try await Task.sleep(for: .milliseconds(5))
            } else if errno != EINTR {
                throw Undriven(
                    errno == EAGAIN ? "it does not read its standard input" : "it has closed its standard input"
                )
            }
        }
    }

    /// Waits for its end, and ends it after a while.
    /// - Returns: Its exit status, 128 more than the signal that ended it; nil if it had to be ended.
    func end(within patience: Duration) async -> Int32? {
        await withTaskGroup(of: Void.self) { group in
            group.addTask { [self] in
                try? await Task.sleep(for: patience)
                kill()
            }
            defer { group.cancelAll() }
            for await status in status { return state.withLock { $0.wasKilled } ? nil : status }
            return nil
        }
    }

    /// Ends it and its children at once.
    func kill() {
        state.withLock { state in
            guard !state.hasEnded else { return }
            state.wasKilled = true
            _ = Foundation.kill(-process, SIGKILL)
        }
    }

    /// The last lines of its standard error.
    var complaints: [String] { state.withLock { $0.errors } }

    private func keep(_ line: String) {
        state.withLock { state in
            state.errors.append(String(line.prefix(400)))
            if state.errors.count > Self.errorLines { state.errors.removeFirst() }
        }
    }

    /// Reads lines on a thread of its own until the end.
    private func read(
        _ end: CInt,
        atMost limit: Int,
        _ take: @escaping @Sendable (String) -> Void,
        _ flood: @escaping @Sendable () -> Void
    ) {
        threads.enter()
        Thread.detachNewThread { [self] in
            defer {
                Foundation.close(end)
                threads.leave()
            }
            var rest: [UInt8] = []
            var lines = 0
            var buffer = [UInt8](repeating: 0, count: 1 << 14)
            while true {
                let count = Foundation.read(end, &buffer, buffer.count)
                if count < 0, errno == EINTR { continue }
                guard count > 0 else { break }
                // The rest of a flood is read and forgotten, so that the program does not wait.
                guard lines <= limit else { continue }
                rest += buffer[..<count]
                while let newline = rest.firstIndex(of: UInt8(ascii: "\n")) {
                    take(String(decoding: rest[..<newline], as: UTF8.self))
                    rest.removeFirst(newline + 1)
                    lines += 1
                }
                guard rest.count > Self.lineBytes || lines > limit else { continue }
                rest = []
                if limit < .max {
                    lines = limit + 1
                    flood()
                }
            }
            if !rest.isEmpty { take(String(decoding: rest, as: UTF8.self)) }
        }
    }
}
