import HummingbirdCore
import NIOCore

#if canImport(Glibc)
import Glibc
#else
import Darwin
#endif

/// A screen that cannot be opened.
package struct ScreenError: Error, Sendable, CustomStringConvertible {
    /// What is wrong and how to mend it, on one line.
    package let message: String

    init(cannotListen name: String, cause: IOError) {
        switch cause.errnoCode {
        case EADDRINUSE:
            message =
                "screen: \(name) is in use by another program; stop it, or choose another --screen port (0 picks a free one)"
        case EADDRNOTAVAIL:
            message = "screen: \(name) is not an address of this machine; choose another --screen-host"
        case EACCES:
            message = "screen: not allowed to listen on \(name); ports below 1024 need root or CAP_NET_BIND_SERVICE"
        default:
            message = "screen: cannot listen on \(name): \(cause)"
        }
    }

    package var description: String { message }
}

/// Why a request is not done, as its status and words.
struct ScreenRefusal: Error, Hashable {
    /// The status of the answer.
    let status: Int
    /// What is wrong and how to mend it, on one line.
    let message: String

    init(_ status: Int, _ message: String) {
        self.status = status
        self.message = message
    }
}
