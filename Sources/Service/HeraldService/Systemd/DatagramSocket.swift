import Foundation

/// A socket that sends datagrams to other sockets of this machine.
package struct DatagramSocket: Sendable {
    private let descriptor: CInt

    /// Makes a socket whose receiver may stall for `longestWait` seconds; nil if the system gives none.
    init?(longestWait: Int) {
        #if canImport(Glibc)
        let kind = Int32(SOCK_DGRAM.rawValue)
        #else
        let kind = SOCK_DGRAM
        #endif
        descriptor = socket(AF_UNIX, kind, 0)
        guard descriptor >= 0 else { return nil }
        _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC)
        var wait = timeval(tv_sec: longestWait, tv_usec: 0)
        setsockopt(descriptor, SOL_SOCKET, SO_SNDTIMEO, &wait, socklen_t(MemoryLayout<timeval>.size))
    }

    /// Sends a datagram to the socket at a path, or with an abstract name if the address begins with `@`.
    /// - Returns: 0, or the system's error.
    func send(_ bytes: [UInt8], to address: String) -> CInt {
        var path = Array(address.utf8)
        var name = sockaddr_un()
        let capacity = MemoryLayout.size(ofValue: name.sun_path)
        guard !path.isEmpty, path.count < capacity else { return EINVAL }
        // An abstract name begins with a zero byte, and has no such byte at its end (unix(7)).
        if path[0] == UInt8(ascii: "@") { path[0] = 0 }
        name.sun_family = sa_family_t(AF_UNIX)
        withUnsafeMutableBytes(of: &name.sun_path) { $0.copyBytes(from: path) }
        let length = socklen_t(MemoryLayout<sockaddr_un>.size - capacity + path.count)
        while true {
            let sent = withUnsafePointer(to: name) { pointer in
                pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                    sendto(descriptor, bytes, bytes.count, 0, $0, length)
                }
            }
            if sent >= 0 { return 0 }
            if errno != EINTR { return errno }
        }
    }

    /// Gives the descriptor back.
    func close() {
        Foundation.close(descriptor)
    }
}
