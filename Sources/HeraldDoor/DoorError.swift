import NIOCore

#if canImport(Glibc)
import Glibc
#else
import Darwin
#endif

/// A door that cannot be opened, or a connection that it does not take.
package struct DoorError: Error, Sendable, CustomStringConvertible {
    package struct Code: Hashable, Sendable {
        private enum Name: Hashable, Sendable {
            case cannotOpen
            case tooManyConnections
        }

        private let name: Name

        package static let cannotOpen = Code(name: .cannotOpen)
        package static let tooManyConnections = Code(name: .tooManyConnections)
    }

    package let code: Code
    /// What is wrong and how to mend it, on one line.
    package let message: String

    package init(code: Code, message: String) {
        self.code = code
        self.message = message
    }

    init(cannotOpen door: DoorConfiguration, cause: any Error) {
        code = .cannotOpen
        let address = "\(door.host):\(door.port)"
        switch (cause as? IOError)?.errnoCode {
        case EADDRINUSE:
            message =
                "\(door.name): \(address) is in use by another program; stop it, or choose another \(door.portOption) "
                + "(0 picks a free one)"
        case EADDRNOTAVAIL:
            message = "\(door.name): \(door.host) is not an address of this machine; choose another --host"
        case EACCES:
            message =
                "\(door.name): not allowed to listen on \(address); ports below 1024 need root or CAP_NET_BIND_SERVICE"
        default:
            message = "\(door.name): cannot listen on \(address): \(cause)"
        }
    }

    package var description: String { message }
}
