import NIOCore

#if canImport(Glibc)
import Glibc
#else
import Darwin
#endif

/// Failure to open a listener.
package struct WebListenerError: Error, Sendable, CustomStringConvertible {
    /// The error and its remedy, on one line.
    package let message: String

    package init(_ address: ListenAddress, cause: any Error) {
        let words =
            switch (cause as? IOError)?.errnoCode {
            case EADDRINUSE:
                "\(address) is in use by another program; stop it, or choose another \(address.portOption) (0 picks a free one)"
            case EADDRNOTAVAIL:
                "\(address) is not an address of this machine; choose another \(address.hostOption)"
            case EACCES:
                "not allowed to listen on \(address); ports below 1024 need root or CAP_NET_BIND_SERVICE"
            default:
                cause is SocketAddressError.UnknownHost
                    ? "the host of \(address) is not an address of this machine, which has no brackets; choose another "
                        + address.hostOption
                    : "cannot listen on \(address): \(cause)"
            }
        message = "\(address.listener): \(words)"
    }

    package var description: String { message }
}
