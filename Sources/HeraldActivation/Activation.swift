import HeraldDoor
package import HeraldModel
package import HeraldTrust
package import HeraldWeb
import Hummingbird
import HummingbirdCore
package import Logging
import NIOCore
package import NIOSSL
import Synchronization

/// Where new devices come in: Enrollment over Secure Transport (RFC 7030), on a door of its own.
///
///     GET  /.well-known/est/cacerts          the authorities of this service
///     GET  /.well-known/est/csrattrs         204: nothing particular is wanted of a request
///     POST /.well-known/est/simpleenroll     a certificate for who shows an invitation's code
///     POST /.well-known/est/simplereenroll   another one for the device whose certificate the connection has
///     GET  /.well-known/herald               where the door for devices is
///
/// TLS asks for a client certificate and does without; who shows one of another authority gets no connection.
package final class Activation: Sendable {
    let configuration: ActivationConfiguration
    let trust: TrustOffice
    let devicePort: Int
    let clock: any WallClock
    let logger: Logger
    let throttle: Mutex<CodeThrottle>
    let renewals: Mutex<PaceTable<DeviceID>>
    let metrics = ActivationMetrics()
    private let listener: ActivationListener

    /// - Parameters:
    ///   - configuration: Where it listens, and its limits.
    ///   - context: TLS of this door; its chain ends with the authority, so that who knows its fingerprint finds it there.
    ///   - trust: Who is let in, and what they are given.
    ///   - devicePort: Where devices connect to.
    ///   - clock: By which codes and certificates are judged.
    ///   - logger: Told who was activated, and who was refused.
    package init(
        configuration: ActivationConfiguration,
        context: NIOSSLContext,
        trust: TrustOffice,
        devicePort: Int,
        clock: any WallClock,
        logger: Logger
    ) {
        self.configuration = configuration
        self.trust = trust
        self.devicePort = devicePort
        self.clock = clock
        self.logger = logger
        let refusals = RefusalDesk(door: "activation", logger: logger) { certificate in
            trust.peers.fault(of: .device, certificate: certificate, at: clock.now())
        }
        listener = ActivationListener(context: context, refusals: refusals)
        throttle = Mutex(CodeThrottle(configuration))
        renewals = Mutex(
            PaceTable(
                burst: configuration.renewals,
                interval: configuration.renewalInterval,
                capacity: configuration.remembered
            )
        )
    }

    /// The context for the handshakes from now on.
    ///
    /// Sessions of the old one do not resume.
    package func replaceContext(_ context: NIOSSLContext) {
        listener.replaceContext(context)
    }

    /// The door; `isOpen` is told the port once it listens.
    package func door(_ isOpen: @escaping @Sendable (Int) -> Void) -> WebDoor {
        let router = Router(context: ActivationContext.self)
        router.add(middleware: ActivationFailures(logger: logger))
        addRoutes(to: router)
        var decoder = HTTP1Channel.Configuration.DecoderConfiguration()
        decoder.maxHeaderFieldSize = configuration.maximumHeaderBytes
        decoder.maxHeaderListSize = configuration.maximumHeaderBytes
        decoder.maxHeaderFieldCount = 64
        let http = HTTP1Channel.Configuration(
            idleTimeout: TimeAmount(configuration.idleTimeout),
            httpDecoderConfiguration: decoder
        )
        let (listener, configuration) = (listener, configuration)
        let place = WebPlace.Address.port(host: configuration.host, port: configuration.port)
        return WebDoor(
            WebPlace(door: "activation", place, portOption: "--activation-port", hostOption: "--host"),
            router: router,
            server: HTTPServerBuilder { responder in
                ActivationChannel(
                    base: HTTP1Channel(responder: responder, configuration: http),
                    listener: listener,
                    configuration: configuration
                )
            },
            maximumConnections: nil,
            logger: logger,
            isOpen: isOpen
        )
    }
}

/// Makes every failure an answer in plain words.
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
            return ActivationRefusal(error.status, "there is nothing at this path for this method").response
        } catch {
            // What failed is the operator's; the client learns that it was not its fault.
            logger.error("an activation failed", metadata: ["error": "\(error)", "address": "\(context.address)"])
            return ActivationRefusal(.internalServerError, "the service failed; its log says why").response
        }
    }
}
