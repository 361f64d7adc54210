import Foundation

/// Address of a queue: `sqlite:///absolute/path` or `postgresql://…`.
package enum DatabaseAddress: Hashable, Sendable {
    /// Absolute path of a SQLite file.
    case sqlite(path: String)
    /// A connection URI of libpq.
    case postgresql(String)

    /// Parses an address.
    /// - Throws: ``RelayStoreError/Code/unusable``, without the password in the address.
    package init(_ text: String) throws {
        if text.hasPrefix("postgresql://") || text.hasPrefix("postgres://") {
            self = .postgresql(text)
        } else if text.hasPrefix("sqlite://") {
            let path = String(text.dropFirst("sqlite://".count)).removingPercentEncoding ?? ""
            guard path.hasPrefix("/"), !path.hasSuffix("/"), !path.utf8.contains(0) else {
                throw RelayStoreError(
                    .unusable,
                    "the path of a SQLite queue must be absolute: write sqlite:///var/lib/herald/queue.db, with three slashes"
                )
            }
            self = .sqlite(path: path)
        } else {
            throw RelayStoreError(
                .unusable,
                "the database must be sqlite:///absolute/path or postgresql://user@host/name"
            )
        }
    }
}

extension RelayStoreError {
    /// Error for a path in a folder that does not exist; nil if it exists.
    static func noFolder(for path: String) -> RelayStoreError? {
        let folder = (path as NSString).deletingLastPathComponent
        var isFolder: ObjCBool = false
        guard !FileManager.default.fileExists(atPath: folder, isDirectory: &isFolder) || !isFolder.boolValue else {
            return nil
        }
        return RelayStoreError(
            .unusable,
            "the folder \(folder) of the queue does not exist: make it with `mkdir -p`"
        )
    }
}

extension DatabaseAddress: CustomStringConvertible {
    /// The address without the password.
    package var description: String {
        switch self {
        case .sqlite(let path): return "sqlite://\(path)"
        case .postgresql(let text):
            guard let scheme = text.range(of: "://") else { return "postgresql://…" }
            // A password may hold `/` and `@` without escapes. If it may also hold `?`, or stand in a parameter with `@`,
            // nothing is shown.
            let rest = text[scheme.upperBound...]
            let parameters = rest.drop { $0 != "?" }
            guard !parameters.contains("@") else { return "postgresql://…" }
            let location = rest.dropLast(parameters.count)
            return
                "postgresql://\(location.lastIndex(of: "@").map { location[location.index(after: $0)...] } ?? location)"
        }
    }
}
