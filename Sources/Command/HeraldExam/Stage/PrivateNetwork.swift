import Foundation

/// A network of the exam's own, in which Apple's names lead to the exam and nothing else can be reached.
///
/// The command runs itself again in it, with its own mounts and process identifiers: what a sender leaves behind ends with
/// it.
package struct PrivateNetwork: Sendable {
    /// The names of Apple's services for providers; senders are told the first one.
    package static let names = ["api.push.apple.com", "api.sandbox.push.apple.com", "api.development.push.apple.com"]
    package static let port = 443

    private let scratch: String

    package init(scratch: String) {
        self.scratch = scratch
    }

    private var unshare: [String] {
        let user = geteuid() == 0 ? [] : ["--user", "--map-root-user"]
        return user + ["--mount", "--net", "--pid", "--fork", "--kill-child=SIGKILL", "--mount-proc"]
    }

    /// Why this machine does not allow it; nil if it does.
    package func failure() -> String? {
        do {
            let (status, words) = try run(enter + ["true"], capturesErrors: true)
            return status == 0 ? nil : words.split(separator: "\n").last.map(String.init) ?? "status \(status)"
        } catch {
            return "unshare and setpriv of util-linux are not there"
        }
    }

    /// Runs a program, given by its path and arguments, in the network.
    ///
    /// `started` gets the process that ends the network when it gets SIGTERM.
    /// - Returns: Its exit status.
    /// - Throws: An error of Foundation if it cannot be started.
    package func run(_ program: [String], started: (Int32) -> Void) throws -> Int32 {
        try run(enter + program, capturesErrors: false, started: started).status
    }

    private var enter: [String] {
        let script = #"mount --bind "$0" /etc/hosts && ip link set lo up && exec "$@""#
        return unshare + ["sh", "-c", script, hosts]
    }

    private var hosts: String { "\(scratch)/hosts" }

    private func run(
        _ arguments: [String],
        capturesErrors: Bool,
        started: (Int32) -> Void = { _ in }
    ) throws -> (status: Int32, words: String) {
        let text = "127.0.0.1 localhost\n" + Self.names.map { "127.0.0.1 \($0)\n" }.joined()
        try Data(text.utf8).write(to: URL(fileURLWithPath: hosts))
        let process = Process()
        process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
        // The network ends with the thread that waits for it, also if the command is killed.
        process.arguments = ["setpriv", "--pdeathsig", "KILL", "unshare"] + arguments
        let errors = Pipe()
        if capturesErrors { process.standardError = errors }
        // `waitUntilExit` of Foundation may wait for ever on a thread that is not the main one.
        let ended = DispatchSemaphore(value: 0)
        process.terminationHandler = { _ in ended.signal() }
        try process.run()
        started(process.processIdentifier)
        let words = capturesErrors ? errors.fileHandleForReading.readDataToEndOfFile() : Data()
        ended.wait()
        return (process.terminationStatus, String(decoding: words, as: UTF8.self))
    }
}
