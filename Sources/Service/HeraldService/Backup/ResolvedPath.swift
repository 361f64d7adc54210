import Foundation

/// A path without links, so that two paths can be compared: byte by byte, as the kernel does.
struct ResolvedPath: Hashable {
    private let path: [UInt8]

    /// - Parameter path: A path whose folder exists; it need not exist itself.
    init(_ path: String) {
        let folder = SafeFile.folder(of: path)
        let slash = UInt8(ascii: "/")
        let name = path.utf8.split(separator: slash).last ?? ""[...].utf8
        self.path =
            Self.real(path) ?? Self.real(folder).map { ($0 == [slash] ? $0 : $0 + [slash]) + name } ?? Array(path.utf8)
    }

    /// Whether this is the other path, or a folder above it.
    func contains(_ other: ResolvedPath) -> Bool {
        let slash = UInt8(ascii: "/")
        return other == self || other.path.starts(with: path == [slash] ? path : path + [slash])
    }

    private static func real(_ path: String) -> [UInt8]? {
        guard let found = realpath(path, nil) else { return nil }
        defer { free(found) }
        return Array(String(cString: found).utf8)
    }
}
