import Foundation

/// Where log lines go; each is handed over whole, so that lines of several threads never mix.
protocol LogSink: Sendable {
    func write(_ line: [UInt8])
}

/// Standard error.
struct StandardErrorSink: LogSink {
    func write(_ line: [UInt8]) {
        var rest = line[...]
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes { Foundation.write(STDERR_FILENO, $0.baseAddress, $0.count) }
            if count < 0, errno == EINTR { continue }
            // A log that nobody takes must not stop the service.
            guard count > 0 else { return }
            rest = rest.dropFirst(count)
        }
    }
}
