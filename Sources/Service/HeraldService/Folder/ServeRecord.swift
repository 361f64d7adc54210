package import Foundation

/// `run/serve.json`: the last start of the service, for those who wait until it is ready.
package struct ServeRecord: Codable, Hashable {
    package var pid: Int32
    /// The error that ended it, on one line; nil while it runs, and if it was killed.
    package var error: String?

    package init(pid: Int32, error: String? = nil) {
        self.pid = pid
        self.error = error
    }

    /// Whether the process runs; one for which its parent has not waited yet does not.
    var isAlive: Bool {
        guard kill(pid, 0) == 0 || errno == EPERM else { return false }
        // The state stands behind the name, which is in parentheses (proc(5)).
        guard let facts = try? String(contentsOfFile: "/proc/\(pid)/stat", encoding: .utf8),
            let name = facts.lastIndex(of: ")")
        else { return true }
        return !facts[name...].dropFirst(2).hasPrefix("Z")
    }

    /// Writes the file if there is a folder for it; a failure does not matter to the service.
    package func write(to folder: DataFolder) {
        guard let bytes = try? JSONEncoder().encode(self) else { return }
        try? SafeFile.write(Array(bytes), to: folder.serveRecordPath, mode: 0o600)
    }

    /// Removes the file: the service stopped as it was told.
    package static func remove(from folder: DataFolder) {
        unlink(folder.serveRecordPath)
    }

    /// The record, and its age in seconds; nil if there is none.
    package static func read(from folder: DataFolder) -> (record: ServeRecord, age: TimeInterval)? {
        let path = folder.serveRecordPath
        guard let bytes = try? SafeFile.read(path),
            let record = try? JSONDecoder().decode(ServeRecord.self, from: Data(bytes)),
            let written = (try? FileManager.default.attributesOfItem(atPath: path))?[.modificationDate] as? Date
        else { return nil }
        return (record, -written.timeIntervalSinceNow)
    }
}

/// Finds out that the service for which a command waits has ended.
package struct ServeEnd {
    /// How long before the command the service may have ended, in seconds.
    ///
    /// A script starts both at once, and the service may be quicker. What ended earlier is another story.
    static let slack = 10.0
    /// How long a command waits before it reports what ended before it began, in seconds.
    ///
    /// That may be of a former run, while the next one starts and has not written its record yet.
    static let patience = 5.0

    private var seen: Int32?

    package init(seen: Int32? = nil) {
        self.seen = seen
    }

    /// Looks at the record of the last start, if there is one, `waited` seconds after the command began.
    /// - Returns: Why it ended; nil if it runs, or nobody has started it yet.
    package mutating func look(_ found: (record: ServeRecord, age: TimeInterval)?, waited: TimeInterval) -> String? {
        guard let (record, age) = found else { return nil }
        let isOurs =
            seen == record.pid || age <= waited || (age <= waited + Self.slack && waited >= Self.patience)
        if let error = record.error { return isOurs ? "the service ended: \(error)" : nil }
        guard !record.isAlive else {
            seen = record.pid
            return nil
        }
        return isOurs ? "the service ended without a word, so it was killed or crashed: its log says more" : nil
    }
}
