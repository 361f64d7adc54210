import Foundation
import Synchronization

#if canImport(Glibc)
import Glibc
#else
import Darwin
#endif

/// Tells when a file is written, by whatever program.
///
/// On Linux the kernel says so (inotify). A look at the file's time and size every two seconds finds what the kernel does
/// not see: a network's file system, a file that was put in another's place, the `-wal` beside it of a program that
/// switched to write-ahead logging, to which rows go first; and is all there is elsewhere.
enum FileWatch {
    private static let pause: Int32 = 2000

    static func changes(of path: String) -> AsyncStream<Void> {
        let (stream, continuation) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
        let state = WatchState()
        continuation.onTermination = { _ in state.end() }
        continuation.yield()
        let thread = Thread {
            watch(path, state) { continuation.yield() }
        }
        thread.name = "herald-relay-watch"
        thread.start()
        return stream
    }

    private static func watch(_ path: String, _ state: WatchState, _ tell: () -> Void) {
        let paths = [path, path + "-wal"]
        var seen = paths.map(mark)
        #if os(Linux)
        let descriptor = inotify_init1(Int32(IN_NONBLOCK) | Int32(IN_CLOEXEC))
        defer { if descriptor >= 0 { close(descriptor) } }
        // The journal's end is the commit: SQLite deletes it, or makes it empty.
        let events = UInt32(IN_MODIFY) | UInt32(IN_CLOSE_WRITE)
        if descriptor >= 0 { inotify_add_watch(descriptor, path, events) }
        #endif
        while !state.isEnded {
            var told = false
            #if os(Linux)
            var polled = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
            if descriptor >= 0, poll(&polled, 1, pause) > 0 {
                drain(descriptor)
                told = true
                // A transaction writes many pages: the commit is what counts, and it is the last of them.
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
                told = true
                #if os(Linux)
                // It may be another file by now; the same one is watched once all the same.
                if descriptor >= 0 { inotify_add_watch(descriptor, path, events) }
                #endif
            }
            if told { tell() }
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

/// What of a file changes when it is written, or another is put in its place.
private struct FileMark: Equatable {
    let time: Date?
    let size: Int?
    let number: Int?
}

/// Whether a watch is to end.
final class WatchState: Sendable {
    private let ended = Mutex(false)

    var isEnded: Bool { ended.withLock { $0 } }

    func end() { ended.withLock { $0 = true } }
}
