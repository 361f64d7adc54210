import Foundation

/// The output file of a command that issues a key, which exists only once.
package enum OutputFile {
    /// Checks that a file can be written, before a key is made that would be lost otherwise.
    ///
    /// An existing file is never overwritten: it may hold the only copy of a key.
    /// - Throws: ``CommandError/Code/file``.
    package static func check(_ path: String) throws {
        var isFolder: ObjCBool = false
        if FileManager.default.fileExists(atPath: path, isDirectory: &isFolder) {
            throw CommandError(
                .file,
                isFolder.boolValue
                    ? "\(path) is a folder: name a file in it"
                    : "\(path) already exists, and may hold the only copy of a key: name another file, or remove it"
            )
        }
        try checkFolder(SafeFile.folder(of: path), for: path)
    }

    /// Checks that files can be written into a folder.
    /// - Throws: ``CommandError/Code/file``.
    package static func checkFolder(_ path: String, for file: String? = nil) throws {
        let folder = path.isEmpty ? "." : path
        var isFolder: ObjCBool = false
        guard FileManager.default.fileExists(atPath: folder, isDirectory: &isFolder), isFolder.boolValue else {
            throw CommandError(
                .file,
                "cannot write \(file ?? folder): there is no folder \(folder): make it, or name another"
            )
        }
        guard access(folder, W_OK | X_OK) == 0 else { throw SafeFile.failure("cannot write into", folder) }
    }

    /// Writes the file of what was issued, with mode 0600 if it holds a key; overwrites none that was made since the check.
    ///
    /// The text has no other copy. `undo` is the command that revokes what was issued, for the error.
    /// - Throws: ``CommandError/Code/file``.
    package static func write(_ text: String, to path: String, undo: String) throws {
        let mode: UInt32 = text.contains("PRIVATE KEY") ? 0o600 : 0o644
        do {
            try SafeFile.write(Array(text.utf8), to: path, mode: mode, isNew: true)
        } catch let error as CommandError {
            throw CommandError(
                error.code,
                "\(error.message); it was issued, and is lost: run `\(undo)`, and issue another"
            )
        }
    }
}
