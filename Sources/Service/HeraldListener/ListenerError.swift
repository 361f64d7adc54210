import HeraldModel
import NIOCore

#if canImport(Glibc)
import Glibc
#else
import Darwin
#endif

/// A listener cannot open its port, or refuses a connection because of its limit.
package struct ListenerError: CodedError {
    package enum Code: Hashable, Sendable {
        case cannotOpen
        case tooManyConnections
    }

    package let code: Code
    /// One line: the problem, and what to do.
    package let message: String

    package init(code: Code, message: String) {
        self.code = code
        self.message = message
    }

    init(cannotOpen listener: ListenerConfiguration, cause: any Error) {
        code = .cannotOpen
        let address = HostPort(host: listener.host, port: listener.port)
        let problem =
            switch (cause as? IOError)?.errnoCode {
            case EADDRINUSE:
                "\(address) is in use by another program; stop it, or choose another \(listener.portOption) "
                    + "(0 picks a free one)"
            case EADDRNOTAVAIL:
                "\(listener.host) is not an address of this machine; choose another --host"
            case EACCES:
                "not allowed to listen on \(address); ports below 1024 need root or CAP_NET_BIND_SERVICE"
            default:
                cause is SocketAddressError.UnknownHost
                    ? "\(listener.host) is not an address of this machine; use 0.0.0.0 or an address with --host "
                        + "(names for the certificate go to --hostname)"
                    : "cannot listen on \(address): \(cause)"
            }
        message = "\(listener.name): \(problem)"
    }
}
