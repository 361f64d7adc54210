import Foundation
import Synchronization

/// Reports writes to a file by any program, and once that it watches.
///
/// On Linux it uses inotify, also for the `-wal` file of a queue in WAL mode. It also compares time, size and inode every two
/// seconds, which covers network file systems and a replaced file. Elsewhere it only compares.
enum FileWatch {
    private static let pause: Int32 = 2000

    static func changes(of path: String) -> AsyncStream<Void> {
        let (stream, continuation) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
        let state = StopFlag()
        continuation.onTermination = { _ in state.end() }
        let thread = Thread {
            watch(path, state) { continuation.yield() }
        }
        thread.name = "herald-relay-watch"
        thread.start()
        return stream
    }

    private static func watch(_ path: String, _ state: StopFlag, _ notify: () -> Void) {
        let paths = [path, path + "-wal"]
        var seen = paths.map(mark)
        #if os(Linux)
        let descriptor = inotify_init1(Int32(IN_NONBLOCK) | Int32(IN_CLOEXEC))
        defer { if descriptor >= 0 { close(descriptor) } }
        // A commit ends by deleting or truncating the journal.
        let events = UInt32(IN_MODIFY) | UInt32(IN_CLOSE_WRITE)
        // Watching the same file twice has no effect, and a missing one cannot be watched.
        func follow() {
            guard descriptor >= 0 else { return }
            for path in paths { inotify_add_watch(descriptor, path, events) }
        }
        follow()
        #endif
        // Only now: a write between this and the watching would be missed.
        notify()
        while !state.isEnded {
            var isChanged = false
            #if os(Linux)
            var polled = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
            if descriptor >= 0, poll(&polled, 1, pause) > 0 {
                drain(descriptor)
                isChanged = true
                // A transaction writes many pages, and commits with the last.
                usleep(2000)
                drain(descriptor)
            } else if descriptor < 0 {
                usleep(UInt32(pause) * 1000)
            }
            #else
            usleep(UInt32(pause) * 1000)
            #endif
            let now = paths.map(mark)
            if now != seen {
                seen = now
                isChanged = true
                #if os(Linux)
                // A path may be another file now, or the log may be new.
                follow()
                #endif
            }
            if isChanged { notify() }
        }
    }

    #if os(Linux)
    private static func drain(_ descriptor: Int32) {
        var buffer = [UInt8](repeating: 0, count: 4096)
        while buffer.withUnsafeMutableBytes({ read(descriptor, $0.baseAddress, $0.count) }) > 0 {}
    }
    #endif

    private static func mark(_ path: String) -> FileMark? {
        guard let attributes = try? FileManager.default.attributesOfItem(atPath: path) else { return nil }
        return FileMark(
            time: attributes[.modificationDate] as? Date,
            size: attributes[.size] as? Int,
            number: attributes[.systemFileNumber] as? Int
        )
    }
}

/// Attributes that change when a file is written or replaced.
private struct FileMark: Equatable {
    let time: Date?
    let size: Int?
    let number: Int?
}

/// Ends the thread of a stream.
final class StopFlag: Sendable {
    private let ended = Mutex(false)

    var isEnded: Bool { ended.withLock { $0 } }

    func end() { ended.withLock { $0 = true } }
}
