import CSpawn
import Foundation
import Synchronization

/// One run of a program: without a shell, in a session of its own, with nothing of the agent's but what it is given.
final class Program: Sendable {
    /// What is run, and with what.
    struct Call: Hashable, Sendable {
        var path: String
        /// The folder that it works in.
        var folder: String
        var environment: [String: String]
        var input: [UInt8]
    }

    /// How it ended.
    struct Outcome: Hashable, Sendable {
        enum End: Hashable, Sendable {
            case exited(Int32)
            case signalled(Int32)
            /// It took too long, or was not wanted any more, and was ended.
            case ended
            case notStarted(String)
        }

        var end: End
        var output: [UInt8] = []
        /// The last words of its standard error, for people.
        var complaint = ""
        /// Whether it said more than is read.
        var isTooLong = false
    }

    private let call: Call
    private let limits: ProgramLimits
    private struct State {
        var isUnwanted = false
        /// What wakes the thread; -1 before it runs and after it has ended.
        var bell: CInt = -1
    }
    private let state = Mutex(State())

    init(_ call: Call, limits: ProgramLimits) {
        self.call = call
        self.limits = limits
    }

    /// Whether it was ended before it began, or is to end.
    var isUnwanted: Bool { state.withLock { $0.isUnwanted } }

    /// Ends it before its time.
    func end() {
        state.withLock { state in
            state.isUnwanted = true
            ring(state.bell)
        }
    }

    /// Runs it on a thread of its own.
    func run() async -> Outcome {
        await withCheckedContinuation { continuation in
            Thread.detachNewThread { continuation.resume(returning: self.runHere()) }
        }
    }

    private func ring(_ bell: CInt) {
        guard bell >= 0 else { return }
        var byte: UInt8 = 1
        _ = write(bell, &byte, 1)
    }

    private func runHere() -> Outcome {
        // Writing to a program that does not read is no reason to die.
        var signals = sigset_t()
        sigemptyset(&signals)
        sigaddset(&signals, SIGPIPE)
        pthread_sigmask(SIG_BLOCK, &signals, nil)
        guard let input = Pipe.open(), let output = Pipe.open(), let complaints = Pipe.open(), let bell = Pipe.open()
        else { return Outcome(end: .notStarted("cannot make pipes: \(String(cString: strerror(errno)))")) }
        defer { for pipe in [input, output, complaints, bell] { pipe.closeBoth() } }
        let child: pid_t
        switch spawn(input.reader, output.writer, complaints.writer) {
        case .success(let started): child = started
        case .failure(let failure): return Outcome(end: .notStarted(failure.words))
        }
        input.closeReader()
        output.closeWriter()
        complaints.closeWriter()
        state.withLock { state in
            state.bell = bell.writer
            if state.isUnwanted { ring(bell.writer) }
        }
        // Waits without reaping, so that the process's number stays its own until the last signal was sent.
        let ended = Flag()
        Thread.detachNewThread { [self] in
            var information = siginfo_t()
            while waitid(P_PID, id_t(child), &information, WEXITED | WNOWAIT) != 0, errno == EINTR {}
            ended.raise()
            state.withLock { ring($0.bell) }
        }
        var talk = Talk(input: call.input, limits: limits)
        let wasEnded = talk.hold(input, output, complaints, bell, ended: ended, child: child) {
            state.withLock { $0.isUnwanted }
        }
        state.withLock { $0.bell = -1 }
        // What it started ends with it.
        kill(-child, SIGKILL)
        var status: Int32 = 0
        while waitpid(child, &status, 0) < 0, errno == EINTR {}
        let signal = status & 0x7F
        let end: Outcome.End =
            wasEnded ? .ended : signal == 0 ? .exited((status >> 8) & 0xFF) : .signalled(signal)
        return Outcome(end: end, output: talk.output, complaint: talk.lastComplaint, isTooLong: talk.isTooLong)
    }

    private struct Failure: Error {
        let words: String
    }

    private func spawn(_ input: CInt, _ output: CInt, _ complaints: CInt) -> Result<pid_t, Failure> {
        let environment = call.environment.sorted { $0.key < $1.key }.map { strdup("\($0.key)=\($0.value)") } + [nil]
        defer { for text in environment { free(text) } }
        var child: pid_t = 0
        var code: CInt = 0
        // A child that another thread has just forked may still hold the file that was just written.
        for attempt in 0..<20 {
            code = herald_spawn(&child, call.path, call.folder, environment, input, output, complaints)
            guard code == ETXTBSY, attempt < 19 else { break }
            usleep(10_000)
        }
        guard code == 0 else {
            return .failure(Failure(words: "cannot be started: \(String(cString: strerror(code)))"))
        }
        return .success(child)
    }
}

/// Something that has happened.
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

/// What is said between the agent and a program.
private struct Talk {
    private var input: ArraySlice<UInt8>
    private let limits: ProgramLimits
    private(set) var output: [UInt8] = []
    private(set) var isTooLong = false
    private var complaints: [UInt8] = []

    init(input: [UInt8], limits: ProgramLimits) {
        self.input = input[...]
        self.limits = limits
    }

    /// The last line of standard error, 200 characters at most.
    var lastComplaint: String {
        let line = complaints.split(separator: UInt8(ascii: "\n")).last ?? []
        return String(String(decoding: line, as: UTF8.self).prefix(200))
    }

    /// Writes, reads and waits until the program has ended.
    /// - Returns: Whether it was told to end.
    mutating func hold(
        _ stdin: Pipe,
        _ stdout: Pipe,
        _ stderr: Pipe,
        _ bell: Pipe,
        ended: Flag,
        child: pid_t,
        isUnwanted: () -> Bool
    ) -> Bool {
        for pipe in [stdin, stdout, stderr, bell] { pipe.makeNonBlocking() }
        var deadline = ContinuousClock.now + limits.time
        var signal: Int32?
        if input.isEmpty { stdin.closeWriter() }
        while !ended.isUp {
            var ends = [
                pollfd(fd: bell.reader, events: Int16(POLLIN), revents: 0),
                pollfd(fd: stdout.reader, events: Int16(POLLIN), revents: 0),
                pollfd(fd: stderr.reader, events: Int16(POLLIN), revents: 0),
                pollfd(fd: stdin.writer, events: Int16(POLLOUT), revents: 0),
            ]
            // After SIGKILL there is nothing to wait for but its end.
            let left = signal == SIGKILL ? Duration.seconds(1) : deadline - .now
            let milliseconds = max(
                0,
                left.components.seconds * 1000 + left.components.attoseconds / 1_000_000_000_000_000
            )
            poll(&ends, nfds_t(ends.count), Int32(clamping: milliseconds + 1))
            if ends[0].revents != 0 { _ = Self.drain(bell.reader) { _ in } }
            read(stdout, stderr)
            feed(stdin)
            let isLate = ContinuousClock.now >= deadline
            guard !ended.isUp, isLate || (signal == nil && isUnwanted()), signal != SIGKILL else { continue }
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
        let limit = limits.outputBytes
        var (output, isTooLong, complaints) = (output, isTooLong, complaints)
        if Self.drain(
            stdout.reader,
            { bytes in
                let room = limit - output.count
                if bytes.count > room { isTooLong = true }
                output += bytes.prefix(max(0, room))
            }
        ) {
            stdout.closeReader()
        }
        if Self.drain(stderr.reader, { bytes in complaints = (complaints + bytes).suffix(4096) }) {
            stderr.closeReader()
        }
        (self.output, self.isTooLong, self.complaints) = (output, isTooLong, complaints)
    }

    /// Reads what is there, a mebibyte at most in one go.
    /// - Returns: Whether there is never more.
    private static func drain(_ descriptor: CInt, _ take: (ArraySlice<UInt8>) -> Void) -> Bool {
        guard descriptor >= 0 else { return false }
        var buffer = [UInt8](repeating: 0, count: 1 << 16)
        for _ in 0..<16 {
            let count = Foundation.read(descriptor, &buffer, buffer.count)
            if count < 0, errno == EINTR { continue }
            if count == 0 { return true }
            guard count > 0 else { return false }
            take(buffer[..<count])
        }
        return false
    }
}
