import CPosix
import Foundation

/// Processes that a sender's programs leave behind.
///
/// They become children of the exam, whatever session they have made for themselves.
package enum Orphans {
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

    /// The children of a process, a number or `self`.
    package static func children(of process: String = "self") -> [Int32] {
        let tasks = "/proc/\(process)/task"
        let threads = (try? FileManager.default.contentsOfDirectory(atPath: tasks)) ?? []
        return threads.flatMap { thread -> [Int32] in
            let text = (try? String(contentsOfFile: "\(tasks)/\(thread)/children", encoding: .utf8)) ?? ""
            return text.split(separator: " ").compactMap { Int32($0) }
        }
    }
}
