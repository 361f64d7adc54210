import Hummingbird
import NIOCore
import ServiceLifecycle

#if canImport(Glibc)
import Glibc
#else
import Darwin
#endif

/// One of the console's doors, as a service.
package struct ConsoleDoor: Service {
    /// The address, for errors.
    let name: String
    let make: @Sendable () -> Application<RouterResponder<BasicRequestContext>>

    package func run() async throws {
        do {
            try await make().run()
        } catch let error as IOError {
            throw ConsoleError(cannotListen: name, cause: error)
        }
    }
}

/// A door of the console that cannot be opened.
package struct ConsoleError: Error, Sendable, CustomStringConvertible {
    /// What is wrong and how to mend it, on one line.
    package let message: String

    init(cannotListen name: String, cause: IOError) {
        switch cause.errnoCode {
        case EADDRINUSE:
            message =
                "console: \(name) is in use by another program; stop it, or choose another --console-port (0 picks a free one)"
        case EADDRNOTAVAIL:
            message = "console: \(name) is not an address of this machine; choose another --console-host"
        case EACCES:
            message = "console: not allowed to listen on \(name); ports below 1024 need root or CAP_NET_BIND_SERVICE"
        default:
            message = "console: cannot listen on \(name): \(cause)"
        }
    }

    package var description: String { message }
}
