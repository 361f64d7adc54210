import Hummingbird
import NIOCore
import NIOSSL

/// A request with the connection that it came by.
struct ActivationContext: RequestContext {
    var coreContext: CoreRequestContextStorage
    let channel: any Channel

    init(source: ApplicationRequestContextSource) {
        coreContext = CoreRequestContextStorage(source: source)
        channel = source.channel
    }

    /// The client's certificate (DER); on a resumed session the one that the session was made with.
    func certificate() async throws -> [UInt8]? {
        let channel = channel
        return try await channel.eventLoop.submit {
            try channel.pipeline.syncOperations.handler(type: NIOSSLServerHandler.self).peerCertificate?.toDERBytes()
        }
        .get()
    }

    /// For the log.
    var address: String {
        channel.remoteAddress?.ipAddress ?? "unknown"
    }
}
