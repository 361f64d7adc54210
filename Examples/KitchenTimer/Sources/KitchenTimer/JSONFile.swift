import Foundation

/// A file that holds one value as JSON, and is replaced as a whole.
struct JSONFile<Value: Codable & Sendable>: Sendable {
    let path: String

    init(_ path: String) {
        self.path = path
    }

    /// The value; nil if there is no file.
    /// - Throws: ``KitchenRefusal`` if the file cannot be read.
    func read() throws -> Value? {
        guard FileManager.default.fileExists(atPath: path) else { return nil }
        do {
            return try JSONDecoder().decode(Value.self, from: Data(contentsOf: URL(fileURLWithPath: path)))
        } catch {
            throw KitchenRefusal("\(path) cannot be read: move it away to start with an empty kitchen")
        }
    }

    /// Writes the value; the folder is created if it is missing.
    /// - Throws: ``KitchenRefusal``.
    func write(_ value: Value) throws {
        let file = URL(fileURLWithPath: path)
        do {
            let folder = file.deletingLastPathComponent()
            try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
            try JSONEncoder().encode(value).write(to: file, options: .atomic)
        } catch {
            throw KitchenRefusal("\(path) cannot be written: \(error.localizedDescription)")
        }
    }
}

/// Writes a line without buffering.
func say(_ line: String) {
    print(line)
    fflush(nil)
}
