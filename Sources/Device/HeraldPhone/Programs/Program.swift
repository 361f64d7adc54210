import CPosix
import Foundation
import HeraldModel
import Synchronization

/// One run of a program: without a shell, in its own session, and without the agent's descriptors and environment.
final class Program: Sendable {
    /// The program with its environment and input.
    struct Call: Hashable, Sendable {
        var path: String
        /// The working folder.
        var folder: String
        var environment: [String: String]
        var input: [UInt8]
    }

    /// The outcome of a run.
    struct Outcome: Hashable, Sendable {
        enum End: Hashable, Sendable {
            case exited(Int32)
            case signalled(Int32)
            /// It took too long, and was ended.
            case ended
            /// It was ended early: the user ended or removed its app, or the agent ends.
            case cancelled
            case notStarted(String)
        }

        var end: End
        var output: [UInt8] = []
        /// The last line of its standard error.
        var errorLine = ""
        /// Whether it wrote more than the limit.
        var isTooLong = false
    }

    private let call: Call
    private let limits: ProgramLimits
    private struct State {
        var isCancelled = false
        /// The pipe that wakes the thread; -1 before and after the run.
        var wakePipe: CInt = -1
    }
    private let state = Mutex(State())

    init(_ call: Call, limits: ProgramLimits) {
        self.call = call
        self.limits = limits
    }

    /// Whether ``end()`` was called.
    var isCancelled: Bool { state.withLock { $0.isCancelled } }

    /// Ends the program early.
    func end() {
        state.withLock { state in
            state.isCancelled = true
            wake(state.wakePipe)
        }
    }

    /// Runs the program on its own thread.
    func run() async -> Outcome {
        await withCheckedContinuation { continuation in
            Thread.detachNewThread { continuation.resume(returning: self.runHere()) }
        }
    }

    private func wake(_ pipe: CInt) {
        guard pipe >= 0 else { return }
        var byte: UInt8 = 1
        _ = write(pipe, &byte, 1)
    }

    private func runHere() -> Outcome {
        // Writing to a program that does not read must not kill the agent.
        var signals = sigset_t()
        sigemptyset(&signals)
        sigaddset(&signals, SIGPIPE)
        pthread_sigmask(SIG_BLOCK, &signals, nil)
        guard let input = Pipe.open(), let output = Pipe.open(), let errors = Pipe.open(), let wakePipe = Pipe.open()
        else { return Outcome(end: .notStarted("cannot create pipes:  \(String(cString: strerror(errno)))")) }
        defer { for pipe in [input, output, errors, wakePipe] { pipe.closeBoth() } }
        let child: pid_t
        switch spawn(input.reader, output.writer, errors.writer) {
        case .success(let started): child = started
        case .failure(let failure): return Outcome(end: .notStarted(failure.words))
        }
        input.closeReader()
        output.closeWriter()
        errors.closeWriter()
        state.withLock { state in
            state.wakePipe = wakePipe.writer
            if state.isCancelled { wake(wakePipe.writer) }
        }
        // Waits without reaping, so that the process identifier stays valid until the last signal is sent.
        let ended = Flag()
        Thread.detachNewThread { [self] in
            var information = siginfo_t()
            while waitid(P_PID, id_t(child), &information, WEXITED | WNOWAIT) != 0, errno == EINTR {}
            ended.raise()
            state.withLock { wake($0.wakePipe) }
        }
        var io = ProgramIO(input: call.input, limits: limits)
        let wasEnded = io.run(
            stdin: input,
            stdout: output,
            stderr: errors,
            wakePipe: wakePipe,
            ended: ended,
            child: child
        ) {
            state.withLock { $0.isCancelled }
        }
        state.withLock { $0.wakePipe = -1 }
        // Its own child processes end with it.
        kill(-child, SIGKILL)
        var status: Int32 = 0
        while waitpid(child, &status, 0) < 0, errno == EINTR {}
        let signal = status & 0x7F
        let end: Outcome.End
        if wasEnded {
            end = isCancelled ? .cancelled : .ended
        } else {
            end = signal == 0 ? .exited((status >> 8) & 0xFF) : .signalled(signal)
        }
        return Outcome(end: end, output: io.output, errorLine: io.lastErrorLine, isTooLong: io.isTooLong)
    }

    private struct Failure: Error {
        let words: String
    }

    private func spawn(_ input: CInt, _ output: CInt, _ errors: CInt) -> Result<pid_t, Failure> {
        let environment = call.environment.sorted { $0.key < $1.key }.map { strdup("\($0.key)=\($0.value)") } + [nil]
        defer { for text in environment { free(text) } }
        var child: pid_t = 0
        let code = herald_spawn(&child, call.path, call.folder, environment, input, output, errors)
        guard code == 0 else {
            return .failure(Failure(words: "cannot be started: \(String(cString: strerror(code)))"))
        }
        return .success(child)
    }
}

/// A flag that is set once.
private final class Flag: Sendable {
    private let state = Atomic(false)

    func raise() { state.store(true, ordering: .releasing) }
    var isUp: Bool { state.load(ordering: .acquiring) }
}

/// A pipe whose ends are closed once.
private final class Pipe {
    private(set) var reader: CInt
    private(set) var writer: CInt

    private init(_ ends: [CInt]) {
        reader = ends[0]
        writer = ends[1]
    }

    static func open() -> Pipe? {
        var ends: [CInt] = [-1, -1]
        guard herald_pipe(&ends) == 0 else { return nil }
        return Pipe(ends)
    }

    func closeReader() {
        if reader >= 0 { close(reader) }
        reader = -1
    }

    func closeWriter() {
        if writer >= 0 { close(writer) }
        writer = -1
    }

    func closeBoth() {
        closeReader()
        closeWriter()
    }

    func makeNonBlocking() {
        for end in [reader, writer] where end >= 0 { _ = fcntl(end, F_SETFL, fcntl(end, F_GETFL) | O_NONBLOCK) }
    }
}

/// The input and output of a program.
private struct ProgramIO {
    private var input: ArraySlice<UInt8>
    private let limits: ProgramLimits
    private(set) var output: [UInt8] = []
    private(set) var isTooLong = false
    private var errors: [UInt8] = []

    init(input: [UInt8], limits: ProgramLimits) {
        self.input = input[...]
        self.limits = limits
    }

    /// The last line of standard error, 200 characters at most.
    var lastErrorLine: String {
        let line = errors.split(separator: UInt8(ascii: "\n")).last ?? []
        return String(String(decoding: line, as: UTF8.self).prefix(200))
    }

    /// Writes, reads and waits until the program has ended.
    /// - Returns: Whether it was signalled to end.
    mutating func run(
        stdin: Pipe,
        stdout: Pipe,
        stderr: Pipe,
        wakePipe: Pipe,
        ended: Flag,
        child: pid_t,
        isCancelled: () -> Bool
    ) -> Bool {
        for pipe in [stdin, stdout, stderr, wakePipe] { pipe.makeNonBlocking() }
        var deadline = ContinuousClock.now + limits.time
        var signal: Int32?
        if input.isEmpty { stdin.closeWriter() }
        while !ended.isUp {
            var ends = [
                pollfd(fd: wakePipe.reader, events: Int16(POLLIN), revents: 0),
                pollfd(fd: stdout.reader, events: Int16(POLLIN), revents: 0),
                pollfd(fd: stderr.reader, events: Int16(POLLIN), revents: 0),
                pollfd(fd: stdin.writer, events: Int16(POLLOUT), revents: 0),
            ]
            // After SIGKILL, only its end is waited for.
            let left = signal == SIGKILL ? Duration.seconds(1) : deadline - .now
            poll(&ends, nfds_t(ends.count), Int32(clamping: max(0, left.wholeMilliseconds) + 1))
            if ends[0].revents != 0 { _ = Self.drain(wakePipe.reader) }
            read(stdout, stderr)
            feed(stdin)
            let isLate = ContinuousClock.now >= deadline
            guard !ended.isUp, isLate || (signal == nil && isCancelled()), signal != SIGKILL else { continue }
            let next = signal == nil ? SIGTERM : SIGKILL
            kill(-child, next)
            signal = next
            deadline = .now + limits.grace
        }
        read(stdout, stderr)
        return signal != nil
    }

    private mutating func feed(_ stdin: Pipe) {
        guard stdin.writer >= 0 else { return }
        while !input.isEmpty {
            let count = input.withUnsafeBytes { write(stdin.writer, $0.baseAddress, $0.count) }
            if count < 0, errno == EINTR { continue }
            if count < 0, errno == EAGAIN { return }
            guard count > 0 else { break }
            input = input.dropFirst(count)
        }
        stdin.closeWriter()
    }

    private mutating func read(_ stdout: Pipe, _ stderr: Pipe) {
        let (written, isOver) = Self.drain(stdout.reader)
        let room = max(0, limits.outputBytes - output.count)
        if written.count > room { isTooLong = true }
        output += written.prefix(room)
        if isOver { stdout.closeReader() }
        let (complaint, isSilent) = Self.drain(stderr.reader)
        errors = Array((errors + complaint).suffix(4096))
        if isSilent { stderr.closeReader() }
    }

    /// Reads the available bytes, at most a mebibyte, and whether they are the last.
    private static func drain(_ descriptor: CInt) -> (bytes: [UInt8], isOver: Bool) {
        var bytes: [UInt8] = []
        guard descriptor >= 0 else { return (bytes, false) }
        var buffer = [UInt8](repeating: 0, count: 1 << 16)
        for _ in 0..<16 {
            let count = Foundation.read(descriptor, &buffer, buffer.count)
            if count < 0, errno == EINTR { continue }
            if count == 0 { return (bytes, true) }
            guard count > 0 else { break }
            bytes += buffer[..<count]
        }
        return (bytes, false)
    }
}
