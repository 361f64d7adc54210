import Foundation

/// Where a queue is: `sqlite:///absolute/path` or `postgresql://…`.
package enum DatabaseAddress: Hashable, Sendable {
    /// A file of SQLite, by its absolute path.
    case sqlite(path: String)
    /// A connection address of libpq ("Connection URIs").
    case postgresql(String)

    /// Reads an address.
    /// - Throws: ``RelayStoreError/Code/unusable``, without a password that it may hold.
    package init(_ text: String) throws {
        if text.hasPrefix("postgresql://") || text.hasPrefix("postgres://") {
            self = .postgresql(text)
        } else if text.hasPrefix("sqlite://") {
            let path = String(text.dropFirst("sqlite://".count)).removingPercentEncoding ?? ""
            guard path.hasPrefix("/"), !path.hasSuffix("/"), !path.utf8.contains(0) else {
                throw RelayStoreError(
                    .unusable,
                    "the path of a SQLite queue is absolute: write sqlite:///var/lib/herald/queue.db, with three slashes"
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
    /// That a queue cannot be made at a path, as there is no folder for it; nil if there is one.
    static func noFolder(for path: String) -> RelayStoreError? {
        let folder = (path as NSString).deletingLastPathComponent
        var isFolder: ObjCBool = false
        guard !FileManager.default.fileExists(atPath: folder, isDirectory: &isFolder) || !isFolder.boolValue else {
            return nil
        }
        return RelayStoreError(
            .unusable,
            "the folder \(folder) of the queue is not there: make it first, by `mkdir -p`"
        )
    }
}

extension DatabaseAddress: CustomStringConvertible {
    /// The address without a password.
    package var description: String {
        switch self {
        case .sqlite(let path): return "sqlite://\(path)"
        case .postgresql(let text):
            guard let scheme = text.range(of: "://") else { return "postgresql://…" }
            let rest = text[scheme.upperBound...]
            let authority = rest.prefix { $0 != "/" && $0 != "?" }
            let host = authority.lastIndex(of: "@").map { authority[authority.index(after: $0)...] } ?? authority
            let name = rest.dropFirst(authority.count).prefix { $0 != "?" }
            return "postgresql://\(host)\(name)"
        }
    }
}
