import Foundation

/// A path without links, so that two paths can be compared.
struct ResolvedPath: Hashable {
    private let path: String

    /// - Parameter path: A path whose folder exists; it need not exist itself.
    init(_ path: String) {
        let folder = SafeFile.folder(of: path)
        let name = path.split(separator: "/").last.map(String.init) ?? ""
        self.path = Self.real(path) ?? Self.real(folder).map { $0 == "/" ? $0 + name : "\($0)/\(name)" } ?? path
    }

    /// Whether this is the other path, or a folder above it.
    func contains(_ other: ResolvedPath) -> Bool {
        other == self || other.path.hasPrefix(path == "/" ? path : path + "/")
    }

    private static func real(_ path: String) -> String? {
        guard let found = realpath(path, nil) else { return nil }
        defer { free(found) }
        return String(cString: found)
    }
}
