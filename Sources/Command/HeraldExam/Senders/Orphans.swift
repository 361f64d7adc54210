import CPosix
import Foundation

/// Processes that a sender's programs leave behind.
///
/// They become children of the exam, whatever session they have made for themselves.
enum Orphans {
    /// The most generations of processes that are ended.
    private static let generations = 100

    /// Makes this process the parent of its descendants whose parent ends.
    static func adopt() { _ = herald_adopt_orphans() }

    /// Ends all children of this process, and theirs.
    static func end() async {
        for _ in 0..<generations {
            let children = children()
            guard !children.isEmpty else { return }
            for child in children { kill(child, SIGKILL) }
            for child in children {
                var status: CInt = 0
                while waitpid(child, &status, 0) < 0, errno == EINTR {}
            }
        }
    }

    private static func children() -> [pid_t] {
        let tasks = "/proc/self/task"
        let threads = (try? FileManager.default.contentsOfDirectory(atPath: tasks)) ?? []
        return threads.flatMap { thread -> [pid_t] in
            let text = (try? String(contentsOfFile: "\(tasks)/\(thread)/children", encoding: .utf8)) ?? ""
            return text.split(separator: " ").compactMap { pid_t($0) }
        }
    }
}
