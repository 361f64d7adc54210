import NIOCore

#if canImport(Glibc)
import Glibc
#else
import Darwin
#endif

extension ConsoleCaller {
    /// The caller at the control socket: an admin, because the file system let them in.
    static func socket(_ context: ConsoleContext) async -> ConsoleCaller {
        let name = await peer(of: context.channel).map { "uid \($0)" } ?? "socket"
        return ConsoleCaller(name: name, role: .admin, proof: .socket)
    }

    #if canImport(Glibc)
    /// `struct ucred` of Linux.
    private struct Credentials: Sendable {
        var pid: Int32 = 0
        var uid: UInt32 = 0
        var gid: UInt32 = 0
    }

    /// The user at the other end of a Unix socket, as the kernel saw it when it connected.
    private static func peer(of channel: any Channel) async -> UInt32? {
        guard let options = channel as? any SocketOptionProvider else { return nil }
        let credentials: EventLoopFuture<Credentials> = options.unsafeGetSocketOption(
            level: .socket,
            name: .init(rawValue: SO_PEERCRED)
        )
        return try? await credentials.get().uid
    }
    #else
    private static func peer(of channel: any Channel) async -> UInt32? { nil }
    #endif
}
