import CPosix
import Foundation

/// The place to which a log goes.
package enum LogOutput: Sendable {
    /// A file, pipe or terminal, which gets lines.
    case stream(CInt)
    /// The socket of systemd's journal, which gets a datagram for each entry: the sending socket, and the path.
    case journal(DatagramSocket, String)

    static let journalPath = "/run/systemd/journal/socket"
    /// The longest wait for the journal's socket, in seconds; then the entry is tried again.
    private static let longestWait = 5
    /// The pause before an entry is tried again when the system has no buffer for it, in microseconds.
    private static let pause: UInt32 = 10_000

    /// The output of this process for a format, and the format itself.
    ///
    /// A log of text goes to the journal with its fields if systemd has connected standard error with it (systemd.exec,
    /// `$JOURNAL_STREAM`).
    /// - Throws: ``CommandError/Code/configuration`` if there is no journal, and the format is its.
    static func ofProcess(
        _ format: HeraldLogHandler.Format,
        environment: [String: String]
    ) throws -> (LogOutput, HeraldLogHandler.Format) {
        guard format == .journald || (format == .text && isJournal(STDERR_FILENO, environment)) else {
            return (.stream(STDERR_FILENO), format)
        }
        if access(journalPath, W_OK) == 0, let socket = DatagramSocket(longestWait: longestWait) {
            return (.journal(socket, journalPath), .journald)
        }
        guard format == .journald else { return (.stream(STDERR_FILENO), format) }
        throw CommandError(
            .configuration,
            "log-format cannot be \"journald\": systemd's journal has no socket at \(journalPath) that can be written; write "
                + "text or json"
        )
    }

    /// Whether a descriptor is the one that `JOURNAL_STREAM` names by device and inode.
    private static func isJournal(_ descriptor: CInt, _ environment: [String: String]) -> Bool {
        var status = herald_status()
        guard let stream = environment["JOURNAL_STREAM"], herald_status_of_descriptor(descriptor, &status) == 0 else {
            return false
        }
        return stream == "\(status.device):\(status.number)"
    }

    /// Writes lines, and waits as long as the reader has stalled.
    /// - Returns: The number of lines that are lost: the log is closed, or the journal is gone or takes no entry of that length.
    func write(_ lines: [[UInt8]]) -> Int {
        switch self {
        case .stream(let descriptor):
            var left = LogOutput.write(lines.flatMap(\.self), to: descriptor)
            var lost = 0
            for line in lines.reversed() where left > 0 {
                left -= line.count
                lost += 1
            }
            return lost
        case .journal(let socket, let path):
            return lines.count { !LogOutput.send($0, with: socket, to: path) }
        }
    }

    /// Whether the journal took an entry.
    private static func send(_ entry: [UInt8], with socket: DatagramSocket, to path: String) -> Bool {
        while true {
            switch socket.send(entry, to: path) {
            case 0: return true
            case EAGAIN: continue
            case ENOBUFS: usleep(pause)
            // This must not stop the service.
            default: return false
            }
        }
    }

    /// - Returns: The number of bytes that were not written.
    private static func write(_ bytes: [UInt8], to descriptor: CInt) -> Int {
        var rest = bytes[...]
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes { Foundation.write(descriptor, $0.baseAddress, $0.count) }
            if count < 0, errno == EINTR { continue }
            if count < 0, errno == EAGAIN {
                var wanted = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
                poll(&wanted, 1, -1)
                continue
            }
            // A closed log must not stop the service.
            guard count > 0 else { return rest.count }
            rest = rest.dropFirst(count)
        }
        return 0
    }
}
