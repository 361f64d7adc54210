import Foundation

/// A program that was started.
package struct ChildProcess: Sendable {
    /// Its exit status, once.
    private let status: AsyncStream<Int32>

    /// Starts a program, without the settings of Herald that this process has in its environment.
    /// - Throws: ``HeraldTestError``.
    init(_ path: String, _ arguments: [String], input: Descriptor, output: Descriptor, errors: Descriptor) throws {
        let process = Process()
        process.executableURL = URL(fileURLWithPath: path)
        process.arguments = arguments
        process.environment = ProcessInfo.processInfo.environment.filter { !$0.key.hasPrefix("HERALD_") }
        process.standardInput = FileHandle(fileDescriptor: input.number, closeOnDealloc: false)
        process.standardOutput = FileHandle(fileDescriptor: output.number, closeOnDealloc: false)
        process.standardError = FileHandle(fileDescriptor: errors.number, closeOnDealloc: false)
        let (status, ended) = AsyncStream<Int32>.makeStream()
        self.status = status
        process.terminationHandler = {
            ended.yield($0.terminationStatus)
            ended.finish()
        }
        do {
            try ChildProcess.withoutBlockedSignals { try process.run() }
        } catch {
            throw HeraldTestError("cannot start \(path): \(error)")
        }
    }

    /// A child inherits the signals that its parent's thread has blocked, and threads of a test block SIGTERM.
    private static func withoutBlockedSignals(_ body: () throws -> Void) rethrows {
        var none = sigset_t()
        var former = sigset_t()
        sigemptyset(&none)
        pthread_sigmask(SIG_SETMASK, &none, &former)
        defer { pthread_sigmask(SIG_SETMASK, &former, nil) }
        try body()
    }

    /// Waits until it ends.
    /// - Returns: Its exit status, or the signal that ended it.
    func end() async -> Int32 {
        for await status in status { return status }
        return -1
    }

    /// Runs a program to its end.
    /// - Returns: Its standard output.
    /// - Throws: ``HeraldTestError`` with its standard error if its exit status is not 0.
    package static func run(_ path: String, _ arguments: [String]) async throws -> String {
        let (child, output, errors) = try piped(path, arguments)
        async let complaint = errors.text()
        let text = await output.text()
        let words = await complaint.trimmingCharacters(in: .whitespacesAndNewlines)
        let status = await child.end()
        guard status == 0 else {
            let name = URL(fileURLWithPath: path).lastPathComponent
            let command = ([name] + arguments).joined(separator: " ")
            throw HeraldTestError("`\(command)` failed with status \(status): \(words.isEmpty ? text : words)")
        }
        return text
    }

    /// The writing ends are closed here when this returns.
    private static func piped(
        _ path: String,
        _ arguments: [String]
    ) throws -> (child: ChildProcess, output: Descriptor, errors: Descriptor) {
        let output = try Descriptor.pipe()
        let errors = try Descriptor.pipe()
        let child = try ChildProcess(
            path,
            arguments,
            input: Descriptor(opening: "/dev/null", O_RDONLY),
            output: output.writer,
            errors: errors.writer
        )
        return (child, output.reader, errors.reader)
    }
}
