package import NIOCore

#if canImport(Glibc)
import Glibc
#else
import Darwin
#endif

/// A door that cannot be opened.
package struct WebDoorError: Error, Sendable, CustomStringConvertible {
    /// What is wrong and how to mend it, on one line.
    package let message: String

    package init(_ place: WebPlace, cause: IOError) {
        let words =
            switch cause.errnoCode {
            case EADDRINUSE:
                "\(place) is in use by another program; stop it, or choose another \(place.portOption) (0 picks a free one)"
            case EADDRNOTAVAIL:
                "\(place) is not an address of this machine; choose another \(place.hostOption)"
            case EACCES:
                "not allowed to listen on \(place); ports below 1024 need root or CAP_NET_BIND_SERVICE"
            default:
                "cannot listen on \(place): \(cause)"
            }
        message = "\(place.door): \(words)"
    }

    package var description: String { message }
}
