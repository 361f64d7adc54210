import CLibpq
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
            guard PostgresAddress.isPlain(text) else {
                throw RelayStoreError(
                    .unusable,
                    "the database's address cannot be read: write postgresql://user:password@host:5432/name, and in the "
                        + "password %40 for @, %2F for /, %3F for ?, %23 for # and %25 for %"
                )
            }
            self = .postgresql(text)
        } else if text.hasPrefix("sqlite://") {
            let path = String(text.dropFirst("sqlite://".count)).removingPercentEncoding ?? ""
            guard !text.contains(where: { "?#".contains($0) }) else {
                throw RelayStoreError(
                    .unusable,
                    "the address of a SQLite queue has only a path: write sqlite:///var/lib/herald/queue.db, and in the path %3F for ? "
                        + "and %23 for #"
                )
            }
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

/// The form of a connection URI.
enum PostgresAddress {
    /// Whether libpq finds every part where it belongs.
    ///
    /// libpq takes a part of a password with `/`, `?` or `@` for a host, a port or a parameter, and quotes it in its errors.
    static func isPlain(_ text: String) -> Bool {
        guard let options = PQconninfoParse(text, nil) else { return false }
        defer { PQconninfoFree(options) }
        var next = options
        while let keyword = next.pointee.keyword {
            let value = next.pointee.val.map { String(cString: $0) } ?? ""
            switch String(cString: keyword) {
            case "port": guard value.allSatisfy({ $0.isASCII && $0.isNumber || $0 == "," }) else { return false }
            case "host", "hostaddr", "dbname", "sslmode":
                guard !value.contains(where: { "@?#".contains($0) }) else { return false }
            default: break
            }
            next += 1
        }
        return true
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
            // A password may hold `?` without escapes, or stand in a parameter: then nothing is shown.
            let rest = text[scheme.upperBound...]
            let parameters = rest.drop { $0 != "?" }
            guard !parameters.contains("@") else { return "postgresql://…" }
            let location = rest.dropLast(parameters.count)
            return
                "postgresql://\(location.lastIndex(of: "@").map { location[location.index(after: $0)...] } ?? location)"
        }
    }
}
