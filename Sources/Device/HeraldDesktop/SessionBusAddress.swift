import Foundation

/// The address of the session bus, from the environment (D-Bus specification, "Server Addresses").
enum SessionBusAddress: Hashable, Sendable {
    /// A Unix socket in the file system.
    case path(String)
    /// A Unix socket in the abstract namespace of Linux.
    case abstract(String)

    /// The longest name of a Unix socket, in bytes.
    static let maximumBytes = 107

    /// Reads the environment; nil if there is no session bus.
    ///
    /// `DBUS_SESSION_BUS_ADDRESS` lists addresses, of which the first Unix socket counts. Without it, the socket `bus` in
    /// `XDG_RUNTIME_DIR` counts, if it exists.
    init?(environment: [String: String]) {
        if let list = environment["DBUS_SESSION_BUS_ADDRESS"], !list.isEmpty {
            guard let address = list.split(separator: ";").lazy.compactMap({ Self(address: $0) }).first else {
                return nil
            }
            self = address
        } else if let folder = environment["XDG_RUNTIME_DIR"], !folder.isEmpty,
            FileManager.default.fileExists(atPath: folder + "/bus")
        {
            self = .path(folder + "/bus")
        } else {
            return nil
        }
    }

    private init?(address: Substring) {
        guard address.hasPrefix("unix:") else { return nil }
        for pair in address.dropFirst("unix:".count).split(separator: ",") {
            let parts = pair.split(separator: "=", maxSplits: 1)
            guard parts.count == 2, let value = String(parts[1]).removingPercentEncoding else { continue }
            guard !value.isEmpty, !value.utf8.contains(0), value.utf8.count <= Self.maximumBytes - 1 else { continue }
            switch parts[0] {
            case "path":
                self = .path(value)
                return
            case "abstract":
                self = .abstract(value)
                return
            default: continue
            }
        }
        return nil
    }

    /// Connects to the bus.
    /// - Throws: ``BusError`` with the system's error.
    func connect() throws -> CInt {
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        let name: [UInt8] =
            switch self {
            case .path(let path): Array(path.utf8) + [0]
            case .abstract(let name): [0] + Array(name.utf8)
            }
        guard name.count <= MemoryLayout.size(ofValue: address.sun_path) else {
            throw BusError("the name of its socket is too long")
        }
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: name) }
        let descriptor = socket(AF_UNIX, CInt(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        guard descriptor >= 0 else { throw BusError(String(cString: strerror(errno))) }
        // The length of an abstract name is that of the address.
        let length = MemoryLayout.offset(of: \sockaddr_un.sun_path).map { $0 + name.count } ?? 0
        let result = withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                Foundation.connect(descriptor, $0, socklen_t(length))
            }
        }
        guard result == 0 else {
            let words = String(cString: strerror(errno))
            close(descriptor)
            throw BusError(words)
        }
        return descriptor
    }
}

/// A problem with the session bus, in words.
struct BusError: Error, Hashable, CustomStringConvertible {
    let description: String

    init(_ description: String) {
        self.description = description
    }
}
