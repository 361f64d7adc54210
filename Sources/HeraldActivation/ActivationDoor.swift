import Hummingbird
import NIOCore
import ServiceLifecycle

#if canImport(Glibc)
import Glibc
#else
import Darwin
#endif

/// The activation door, as a service.
package struct ActivationDoor: Service {
    /// The address, for errors.
    let address: String
    let host: String
    let make: @Sendable () -> Application<RouterResponder<ActivationContext>>

    /// Serves until the group stops.
    /// - Throws: ``ActivationError`` if it cannot listen.
    package func run() async throws {
        do {
            try await make().run()
        } catch let error as IOError {
            throw ActivationError(cannotListen: address, host: host, cause: error)
        }
    }
}

/// An activation door that cannot be opened.
package struct ActivationError: Error, Sendable, CustomStringConvertible {
    /// What is wrong and how to mend it, on one line.
    package let message: String

    init(cannotListen address: String, host: String, cause: IOError) {
        switch cause.errnoCode {
        case EADDRINUSE:
            message =
                "activation: \(address) is in use by another program; stop it, or choose another --activation-port "
                + "(0 picks a free one)"
        case EADDRNOTAVAIL:
            message = "activation: \(host) is not an address of this machine; choose another --host"
        case EACCES:
            message =
                "activation: not allowed to listen on \(address); ports below 1024 need root or CAP_NET_BIND_SERVICE"
        default:
            message = "activation: cannot listen on \(address): \(cause)"
        }
    }

    package var description: String { message }
}
