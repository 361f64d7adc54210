import HeraldModel
import HeraldTrust
import Logging
import NIOCore

/// Deadlines of a binary connection.
extension BinaryConnection {
    func deadlinePassed() {
        guard let context else {
            deadline = nil
            return
        }
        let now = context.eventLoop.now
        deadline = now + Self.tick
        let limits = service.binary
        switch phase {
        case .opening where authorization == nil:
            if input.began + TimeAmount(limits.preface) <= now { return end(nil, context) }
        case .opening, .serving:
            if let partialSince = input.partialSince, inFlight.hasRoom,
                partialSince + TimeAmount(limits.frameTimeout) <= now
            {
                service.logger.debug(
                    "binary connection ended",
                    metadata: ["reason": "a notification was not completed in time"]
                )
                return finish(context)
            }
            // A notification may be on its way: the response names the last one before it.
            if inFlight.count == 0, input.lastRead + TimeAmount(limits.idle) <= now { return abandon(context) }
        case .finishing(let until):
            if until <= now { return abandon(context) }
        case .draining(let until):
            if until <= now { return close(context) }
        case .closed:
            deadline = nil
        }
        if let identity = authorization?.certificate, identity.expires < service.clock.now() { reviewCertificate() }
    }

    /// Closes at once: the stop of the service has taken too long.
    func cutOff() {
        if let context { close(context) }
    }
}
