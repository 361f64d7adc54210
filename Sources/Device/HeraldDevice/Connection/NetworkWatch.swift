import NIOCore
import NIOPosix

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

/// Reports changes of this machine's network interfaces and addresses.
///
/// Reports nothing where the system does not (not Linux, or a sandbox without netlink). The keep-alive test then finds a
/// dead connection.
enum NetworkWatch {
    /// Watches until cancelled.
    static func run(_ changed: () -> Void) async {
        #if os(Linux)
        guard let descriptor = socketOfChanges() else { return }
        do {
            let channel = try await NIOPipeBootstrap(group: MultiThreadedEventLoopGroup.singleton)
                .takingOwnershipOfDescriptor(input: descriptor) { channel in
                    channel.eventLoop.makeCompletedFuture {
                        try NIOAsyncChannel<ByteBuffer, Never>(wrappingChannelSynchronously: channel)
                    }
                }
            try await channel.executeThenClose { inbound in
                // The connection is tested after every change.
                for try await _ in inbound { changed() }
            }
        } catch {
            // Cancelled, or the socket has failed: see above.
        }
        #endif
    }

    #if os(Linux)
    /// Opens a netlink socket that gets a message for each change of links and addresses (rtnetlink(7)).
    private static func socketOfChanges() -> CInt? {
        let descriptor = socket(AF_NETLINK, CInt(SOCK_RAW.rawValue) | flags, 0)
        guard descriptor >= 0 else { return nil }
        var address = NetlinkAddress()
        let bound = withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(descriptor, $0, socklen_t(MemoryLayout<NetlinkAddress>.size))
            }
        }
        guard bound == 0 else {
            close(descriptor)
            return nil
        }
        return descriptor
    }

    private static var flags: CInt { CInt(SOCK_CLOEXEC.rawValue) | CInt(SOCK_NONBLOCK.rawValue) }

    /// `struct sockaddr_nl` of <linux/netlink.h>, which the C library does not have.
    private struct NetlinkAddress {
        var family = UInt16(AF_NETLINK)
        var padding: UInt16 = 0
        /// 0: the kernel chooses.
        var port: UInt32 = 0
        /// RTMGRP_LINK, RTMGRP_IPV4_IFADDR and RTMGRP_IPV6_IFADDR of <linux/rtnetlink.h>.
        var groups: UInt32 = 0x1 | 0x10 | 0x100
    }
    #endif
}
