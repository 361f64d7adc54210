import HeraldListener
import Hummingbird
import NIOCore
import NIOSSL

/// A request with its connection.
struct ActivationContext: RequestContext {
    var coreContext: CoreRequestContextStorage
    let channel: any Channel

    init(source: ApplicationRequestContextSource) {
        coreContext = CoreRequestContextStorage(source: source)
        channel = source.channel
    }

    /// The client's certificate in DER; for a resumed session, that of the original handshake.
    func certificate() async throws -> [UInt8]? {
        let channel = channel
        return try await channel.eventLoop.submit {
            try channel.pipeline.syncOperations.handler(type: NIOSSLServerHandler.self).peerCertificate?.toDERBytes()
        }
        .get()
    }

    /// The client has shown a code or certificate of the service: its connection makes way for no other until its end.
    func becameKnown() async {
        let channel = channel
        try? await channel.eventLoop.submit {
            try channel.pipeline.syncOperations.handler(type: ConnectionGuard.self).admitted.becameKnown()
        }
        .get()
    }

    /// The client: its network for limits, its address for the log.
    func client() async -> (network: ClientNetwork, address: String) {
        let channel = channel
        // A submitted closure cannot fail, except when the loops stop.
        let address = try? await channel.eventLoop.submit { channel.clientAddress }.get()
        return (address?.network ?? ClientNetwork(nil), address?.description ?? "unknown")
    }
}
