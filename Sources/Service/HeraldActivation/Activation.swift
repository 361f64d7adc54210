import HeraldListener
package import HeraldModel
package import HeraldTrust
package import HeraldWeb
import Hummingbird
import HummingbirdCore
package import Logging
import NIOCore
package import NIOSSL

/// Listener for new devices: Enrollment over Secure Transport (RFC 7030).
///
///     GET  /.well-known/est/cacerts          authorities of this service
///     GET  /.well-known/est/csrattrs         204: no attributes are required
///     POST /.well-known/est/simpleenroll     a certificate, for an invitation code
///     POST /.well-known/est/simplereenroll   a new certificate, for the device of the connection
///     GET  /.well-known/herald               port of the listener for devices, and the service's announcement
///
/// TLS requests a client certificate, and accepts a connection without one. A certificate of another authority ends it.
package final class Activation: Sendable {
    private let configuration: ActivationConfiguration
    private let logger: Logger
    private let routes: ActivationRoutes
    private let listener: ActivationListener

    /// The chain of `context` ends with the authority, for clients that know its fingerprint.
    package init(
        configuration: ActivationConfiguration,
        context: NIOSSLContext,
        trust: TrustService,
        devicePort: Int,
        clock: any WallClock,
        logger: Logger
    ) {
        self.configuration = configuration
        self.logger = logger
        routes = ActivationRoutes(
            configuration: configuration,
            trust: trust,
            devicePort: devicePort,
            clock: clock,
            logger: logger
        )
        let refusals = RefusalLog(listener: configuration.listener.name, logger: logger) { certificate in
            trust.peers.fault(of: .device, certificate: certificate, at: clock.now())
        }
        listener = ActivationListener(
            context: context,
            control: ConnectionControl(configuration.listener, refusals: refusals)
        )
    }

    /// Replaces the TLS context for new handshakes; sessions of the old one do not resume.
    package func replaceContext(_ context: NIOSSLContext) {
        listener.replaceContext(context)
    }

    /// The listener, as a service; calls `isOpen` with the port once it listens.
    package func listener(_ isOpen: @escaping @Sendable (Int) -> Void) -> WebListener {
        let router = Router(context: ActivationContext.self)
        router.add(middleware: ActivationFailures(logger: logger))
        routes.add(to: router)
        var decoder = HTTP1Channel.Configuration.DecoderConfiguration()
        decoder.maxHeaderFieldSize = configuration.maximumHeaderBytes
        decoder.maxHeaderListSize = configuration.maximumHeaderBytes
        decoder.maxHeaderFieldCount = 64
        let http = HTTP1Channel.Configuration(
            idleTimeout: TimeAmount(configuration.idleTimeout),
            httpDecoderConfiguration: decoder
        )
        let (listener, configuration) = (listener, configuration)
        let limits = configuration.listener
        let address = ListenAddress.Address.port(host: limits.host, port: limits.port)
        return WebListener(
            ListenAddress(listener: limits.name, address, portOption: "--activation-port", hostOption: "--host"),
            router: router,
            server: WebServer(
                HTTPServerBuilder { responder in
                    ActivationChannel(
                        base: HTTP1Channel(responder: responder, configuration: http),
                        listener: listener,
                        configuration: configuration
                    )
                },
                // Beyond its own limit, so that the newest connections make older ones leave.
                descriptors: limits.maximumDescriptors
            ),
            logger: logger,
            isOpen: isOpen
        )
    }
}

/// Turns errors into answers in plain text.
struct ActivationFailures: RouterMiddleware {
    let logger: Logger

    func handle(
        _ request: Request,
        context: ActivationContext,
        next: (Request, ActivationContext) async throws -> Response
    ) async throws -> Response {
        do {
            return try await next(request, context)
        } catch let refusal as ActivationRefusal {
            return refusal.response
        } catch let error as HTTPError where error.status.code < 500 {
            return ActivationRefusal(error.status, "there is nothing at this path, or not for this method").response
        } catch {
            // The details are for the operator.
            let address = await context.client().address
            logger.error("an activation failed", metadata: ["error": "\(error)", "address": "\(address)"])
            var refusal = ActivationRefusal(.internalServerError, "the service failed; its log has the reason")
            refusal.retryAfter = .seconds(5)
            return refusal.response
        }
    }
}
